import assert from "node:assert/strict";
import { test } from "node:test";

import {
  MEMORIES,
  POST_TABLE,
  READINGS,
  TABLE,
  YOUNG_FOR_MILLISECONDS,
  afterAbandon,
  afterPost,
  backoff,
  classify,
  classifyEntry,
  decide,
  isYoung,
  parseRetryAfter,
} from "../../static/js/rules/decide.js";

const NOW = 1_800_000_000_000;
const ID = "5f0f7f6e-8c3b-4b0e-9d55-3a5b2a5a7a11";
const JSON_TYPE = "application/json";
const PROBLEM = "application/problem+json";
const BODY = { id: ID, model: "veo3.1", prompt: "a lighthouse" };
const KEPT = { id: ID, created_at: NOW - 1000, tries: 1, acknowledged: false, body: BODY, failures: 0 };
const MEMORY = { kept: KEPT, lost: { ...KEPT, body: null }, acknowledged: { ...KEPT, acknowledged: true } };
const OLD = NOW - YOUNG_FOR_MILLISECONDS;

// The whole table again, written by hand from the rules, so that a changed cell must be changed twice.
const EXPECTED = {
  running: ["poll", "poll", "poll"],
  unknown: ["poll", "poll", "poll"],
  completed: ["show", "show", "show"],
  failed: ["show", "show", "show"],
  not_received_young: ["resend", "wait", "record_gone"],
  not_received_old: ["abandon", "abandon", "record_gone"],
  gone: ["show", "show", "show"],
  signed_out: ["sign_in", "sign_in", "sign_in"],
  failed_read: ["back_off", "back_off", "back_off"],
};

test("the table has a cell for every reading and every memory, and no other", () => {
  assert.deepEqual(Object.keys(TABLE), READINGS);
  for (const reading of READINGS) assert.deepEqual(Object.keys(TABLE[reading]), MEMORIES);
  assert.deepEqual(Object.keys(EXPECTED), READINGS);
});

for (const reading of READINGS) {
  MEMORIES.forEach((kind, column) => {
    test(`${reading} with memory ${kind} means ${EXPECTED[reading][column]}`, () => {
      const isYoungRow = reading === "not_received_young";
      const isNotReceived = reading.startsWith("not_received");
      const memory = { ...MEMORY[kind], created_at: isYoungRow || !isNotReceived ? NOW - 1000 : OLD };
      const decision = decide({ kind: isNotReceived ? "not_received" : reading }, memory, NOW);
      assert.equal(decision.action, EXPECTED[reading][column]);
    });
  });
}

test("only a young request that was never acknowledged and whose body is kept is ever sent again", () => {
  const sending = READINGS.flatMap((reading) =>
    MEMORIES.map((kind) => [reading, kind, TABLE[reading][kind].action]),
  ).filter(([, , action]) => action === "resend");
  assert.deepEqual(sending, [["not_received_young", "kept", "resend"]]);
});

test("every 200 acknowledges, so that a later 404 is a lost record and not an invitation to send again", () => {
  for (const reading of ["running", "unknown", "completed", "failed"]) {
    for (const kind of MEMORIES) assert.equal(TABLE[reading][kind].acknowledges, true);
  }
  assert.equal(decide({ kind: "not_received" }, MEMORY.acknowledged, NOW).action, "record_gone");
});

test("reading an unfinished state never ends a request, however old it is and however often it was sent", () => {
  for (const kind of ["running", "unknown"]) {
    for (const memory of Object.values(MEMORY)) {
      const decision = decide({ kind }, { ...memory, created_at: 0, tries: 99, failures: 99 }, NOW);
      assert.equal(decision.action, "poll");
      assert.equal(decision.final, false);
    }
  }
});

test("a request is young for five minutes and three resubmissions, to the millisecond and to the POST", () => {
  assert.equal(isYoung({ ...KEPT, created_at: NOW - YOUNG_FOR_MILLISECONDS + 1 }, NOW), true);
  assert.equal(isYoung({ ...KEPT, created_at: OLD }, NOW), false);
  assert.equal(isYoung({ ...KEPT, tries: 3 }, NOW), true);
  assert.equal(isYoung({ ...KEPT, tries: 4 }, NOW), false);
  assert.equal(isYoung({ ...KEPT, tries: 0 }, NOW), true);
});

test("the number shown for a resubmission is 1, 2, 3 and then it is abandoned", () => {
  const shown = [1, 2, 3].map((tries) => decide({ kind: "not_received" }, { ...KEPT, tries }, NOW).n);
  assert.deepEqual(shown, [1, 2, 3]);
  assert.equal(decide({ kind: "not_received" }, { ...KEPT, tries: 4 }, NOW).action, "abandon");
});

test("a clock set back by hours makes no request young for ever", () => {
  assert.equal(isYoung({ ...KEPT, created_at: NOW + 3_600_000 }, NOW), false);
  assert.equal(isYoung({ ...KEPT, created_at: NOW + 1000 }, NOW), true);
  assert.equal(isYoung({ ...KEPT, created_at: Number.NaN }, NOW), false);
});

test("behind an abandon that was asked for, nothing is sent again", () => {
  assert.equal(decide({ kind: "not_received" }, { ...KEPT, abandoning: true }, NOW).action, "abandon");
});

test("failed reads are spoken of after the third", () => {
  const said = [1, 2, 3].map(
    (failures) => decide({ kind: "failed_read" }, { ...MEMORY.acknowledged, failures }, NOW).say,
  );
  assert.deepEqual(said, [null, null, "read_failed"]);
});

const POSTS = [
  [201, JSON_TYPE, { id: ID, state: "submitting" }, "acknowledged", "acknowledged"],
  [200, JSON_TYPE, { id: ID, state: "completed" }, "acknowledged", "acknowledged"],
  [402, PROBLEM, { code: "insufficient_balance" }, "refused", "refused"],
  [410, PROBLEM, { code: "abandoned" }, "refused", "refused"],
  [410, PROBLEM, { code: "deleted" }, "refused", "refused"],
  [400, PROBLEM, { code: "invalid" }, "refused", "abandon"],
  [409, PROBLEM, { code: "price_changed" }, "refused", "abandon"],
  [413, PROBLEM, { code: "too_large" }, "refused", "abandon"],
  [415, PROBLEM, { code: "unsupported_media_type" }, "refused", "abandon"],
  [422, PROBLEM, { code: "id_reused" }, "read", "read"],
  [401, PROBLEM, { code: "not_authenticated" }, "sign_in", "sign_in"],
  [403, "text/html", "<h1>CSRF</h1>", "sign_in", "sign_in"],
  [0, null, null, "check", "check"],
  [404, PROBLEM, { code: "not_found" }, "check", "check"],
  [405, "text/html", "", "check", "check"],
  [408, "text/html", "", "check", "check"],
  [425, "", null, "check", "check"],
  [429, PROBLEM, { code: "rate_limited" }, "check", "check"],
  [500, PROBLEM, { code: "internal" }, "check", "check"],
  [502, "text/html", "", "check", "check"],
  [503, PROBLEM, { code: "outcome_unknown" }, "check", "check"],
  [504, "", null, "check", "check"],
  // Not our words: a proxy's page neither accepts nor refuses.
  [200, "text/html", "<h1>Sign in to the Wi-Fi</h1>", "check", "check"],
  [201, JSON_TYPE, { id: "other-request", state: "submitting" }, "check", "check"],
  [201, JSON_TYPE, { id: ID, state: "dreaming" }, "check", "check"],
  [204, null, null, "check", "check"],
  [302, "text/html", "", "check", "check"],
  [402, "text/html", "", "check", "check"],
  [400, "text/html", "", "check", "check"],
  [413, "text/html", "", "check", "check"],
  [410, "application/json", { code: "abandoned" }, "check", "check"],
  [422, PROBLEM, { code: "something_else" }, "check", "check"],
];

for (const [status, contentType, body, only, again] of POSTS) {
  test(`POST answer ${status} ${contentType} ${JSON.stringify(body)}: ${only}, after an earlier POST ${again}`, () => {
    const answer = { status, contentType, body };
    assert.equal(afterPost(answer, { ...KEPT, tries: 1 }).action, only);
    assert.equal(afterPost(answer, { ...KEPT, tries: 2 }).action, again);
    assert.equal(afterPost(answer, { ...KEPT, tries: 1 }).keepsDraft, only !== "acknowledged");
  });
}

test("every POST answer has an action for the only and for a later POST", () => {
  for (const row of Object.values(POST_TABLE)) assert.deepEqual(Object.keys(row), ["only", "again"]);
});

test("after abandon only our own 200 says not charged, and 409 says that the request arrived", () => {
  const act = (status, contentType, body) => afterAbandon({ status, contentType, body }, ID).action;
  assert.equal(act(200, JSON_TYPE, { id: ID, code: "abandoned" }), "abandoned");
  assert.equal(act(200, JSON_TYPE, { id: "other", code: "abandoned" }), "retry");
  assert.equal(act(200, "text/html", "<p>ok</p>"), "retry");
  assert.equal(act(204, null, null), "retry");
  assert.equal(act(409, PROBLEM, { code: "live" }), "arrived");
  assert.equal(act(409, "text/html", ""), "retry");
  assert.equal(act(410, PROBLEM, { code: "deleted" }), "show");
  assert.equal(act(401, PROBLEM, { code: "not_authenticated" }), "sign_in");
  for (const status of [0, 404, 408, 429, 500, 503])
    assert.equal(act(status, PROBLEM, { code: "unavailable" }), "retry");
});

test("a 404 is a reading only when it is our problem document with not_received", () => {
  assert.equal(classify(404, PROBLEM, { code: "not_received" }).kind, "not_received");
  assert.equal(classify(404, `${PROBLEM}; charset=utf-8`, { code: "not_received" }).kind, "not_received");
  assert.equal(classify(404, JSON_TYPE, { code: "not_received" }).kind, "failed_read");
  assert.equal(classify(404, PROBLEM, { code: "not_found" }).kind, "failed_read");
  assert.equal(classify(404, "text/html", "<h1>Not Found</h1>").kind, "failed_read");
  assert.equal(classify(410, "text/html", "").kind, "failed_read");
  assert.equal(classify(410, PROBLEM, { code: "deleted" }).kind, "gone");
});

test("a state this page has never heard of is a failed read, not an end", () => {
  assert.equal(classifyEntry({ id: ID, state: "archived" }).kind, "failed_read");
});

test("entries of a list are read like single answers", () => {
  assert.equal(classifyEntry({ id: ID, state: "processing" }).kind, "running");
  assert.equal(classifyEntry({ id: ID, state: "unknown" }).kind, "unknown");
  assert.equal(classifyEntry({ id: ID, code: "not_received" }).kind, "not_received");
  assert.equal(classifyEntry({ id: ID, code: "abandoned" }).kind, "gone");
  assert.equal(classifyEntry({ state: "completed" }).kind, "failed_read");
});

test("classify survives anything, and only exact answers end or resend a request", () => {
  let seed = 20250101;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
  const pick = (values) => values[Math.floor(random() * values.length)];
  const types = [
    undefined,
    null,
    7,
    "",
    "text/html",
    "text/json",
    JSON_TYPE,
    "Application/JSON;charset=utf-8",
    PROBLEM,
    "application/jsonx",
  ];
  const states = [
    undefined,
    null,
    1,
    "",
    "completed",
    "failed",
    "submitting",
    "processing",
    "unknown",
    "__proto__",
    "constructor",
  ];
  const codes = [undefined, null, 3, "", "not_received", "deleted", "abandoned", "toString", "rate_limited"];
  const ids = [undefined, null, ID, 5, ""];
  const kinds = new Set([...READINGS.filter((row) => !row.startsWith("not_received")), "not_received"]);
  const seen = new Set();
  for (let round = 0; round < 50_000; round += 1) {
    const status = random() < 0.6 ? pick([200, 404, 410, 401, 403]) : Math.floor(random() * 700);
    const contentType = pick(types);
    const body = pick([
      undefined,
      null,
      "text",
      3,
      [],
      [{ state: "completed" }],
      { id: pick(ids), state: pick(states), code: pick(codes) },
    ]);
    const reading = classify(status, contentType, body);
    seen.add(reading.kind);
    assert.ok(kinds.has(reading.kind));
    if (reading.kind === "not_received")
      assert.ok(status === 404 && contentType === PROBLEM && body.code === "not_received");
    if (reading.kind === "completed" || reading.kind === "failed") assert.equal(body.state, reading.kind);
    const decision = decide(reading, MEMORY.kept, NOW);
    if (decision.final) assert.ok(status === 200 || status === 410);
    if (decision.action === "resend") assert.equal(status, 404);
  }
  assert.deepEqual([...seen].sort(), [...kinds].sort());
});

test("back-off doubles from 2 s to 60 s with half of it by chance, and honours Retry-After as a lower bound", () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6, 7, 1000].map((tries) => backoff(tries, null, () => 1)),
    [2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000],
  );
  assert.equal(
    backoff(1, null, () => 0),
    1000,
  );
  assert.equal(
    backoff(1, 30, () => 0),
    30000,
  );
  assert.equal(
    backoff(1, 30, () => 1),
    36000,
  );
  assert.equal(
    backoff(6, 1, () => 1),
    60000,
  );
  assert.equal(
    backoff(1, 10 ** 9, () => 0),
    3_600_000,
  );
});

test("Retry-After is read as seconds or as a date", () => {
  assert.equal(parseRetryAfter("12", NOW), 12);
  assert.equal(parseRetryAfter(new Date(NOW + 5000).toUTCString(), NOW), 5);
  assert.equal(parseRetryAfter(new Date(NOW - 5000).toUTCString(), NOW), 0);
  assert.equal(parseRetryAfter("soon", NOW), null);
  assert.equal(parseRetryAfter(null, NOW), null);
});
