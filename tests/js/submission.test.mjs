import assert from "node:assert/strict";
import { test } from "node:test";

import { Submission } from "../../static/js/page/submission.js";
import { RequestMemory } from "../../static/js/rules/memory.js";
import { FakeClock, FakeStorage, FakeTransport, FakeView } from "./fakes.mjs";

const OWNER = "0b54a1c6-7a3a-4d8e-a3ab-7f1f2c9d8e01";
const OTHER = "0b54a1c6-7a3a-4d8e-a3ab-7f1f2c9d8e02";
const ID = "5f0f7f6e-8c3b-4b0e-9d55-3a5b2a5a7a11";
const BODY = { id: ID, model: "veo3.1", prompt: "a lighthouse", seconds: 8, max_price: "0.400000" };
const JSON_TYPE = "application/json";
const PROBLEM = "application/problem+json";
const CUT = { call: "post", status: 0 };
const NOT_RECEIVED = { call: "read", status: 404, contentType: PROBLEM, body: { code: "not_received" } };
const task = (state) => ({ id: ID, state });
const found = (state) => ({ call: "read", status: 200, contentType: JSON_TYPE, body: task(state) });
const refusal = (status, code) => ({ call: "post", status, contentType: PROBLEM, body: { code } });
const ABANDONED = {
  call: "abandon",
  status: 200,
  contentType: JSON_TYPE,
  body: { id: ID, code: "abandoned" },
};

function start(script, { storage = new FakeStorage(), owner = OWNER } = {}) {
  const parts = {
    storage,
    memory: new RequestMemory(storage),
    transport: new FakeTransport(script),
    clock: new FakeClock(),
    view: new FakeView(),
  };
  return { ...parts, submission: new Submission({ owner, ...parts }) };
}

const calls = (page) => page.transport.calls.map(({ call }) => call);

test("the request is in the storage, counted as tried, before it leaves the browser", async () => {
  const storage = new FakeStorage();
  let atSending = null;
  const page = start(
    [
      {
        call: "post",
        status: 201,
        contentType: JSON_TYPE,
        body: task("submitting"),
        before: () => {
          atSending = new RequestMemory(storage).find(OWNER, ID);
        },
      },
    ],
    { storage },
  );
  assert.equal(await page.submission.submit(BODY), "acknowledged");
  assert.equal(atSending.tries, 1);
  assert.deepEqual(atSending.body, BODY);
  assert.deepEqual(page.view.tasks, [task("submitting")]);
  assert.equal(page.memory.find(OWNER, ID).acknowledged, true);
});

test("C02: an answer lost after acceptance is found by reading, and nothing is sent again", async () => {
  const page = start([CUT, found("processing")]);
  assert.equal(await page.submission.submit(BODY), "acknowledged");
  assert.deepEqual(calls(page), ["post", "read"]);
  assert.deepEqual(page.view.said, ["sending", "confirming"]);
  assert.equal(page.memory.find(OWNER, ID).acknowledged, true);
});

test("C02: a request that never arrived is sent again with the same id and the identical body, three times, then abandoned", async () => {
  const page = start([CUT, NOT_RECEIVED, CUT, NOT_RECEIVED, CUT, NOT_RECEIVED, CUT, NOT_RECEIVED, ABANDONED]);
  assert.equal(await page.submission.submit(BODY), "ended");
  assert.deepEqual(calls(page), ["post", "read", "post", "read", "post", "read", "post", "read", "abandon"]);
  for (const { call, body } of page.transport.calls) if (call === "post") assert.deepEqual(body, BODY);
  assert.deepEqual(
    page.view.said.filter((slug) => slug.startsWith("resending")),
    ["resending 1", "resending 2", "resending 3"],
  );
  assert.deepEqual(page.view.ends, ["abandoned"]);
  assert.equal(page.storage.length, 0);
  assert.deepEqual(
    page.clock.slept.map((milliseconds) => milliseconds > 0),
    [true, true, true],
  );
});

test("an unknown outcome is followed and never sent again", async () => {
  const page = start([
    { call: "post", status: 503, contentType: PROBLEM, body: { code: "outcome_unknown" } },
    found("unknown"),
  ]);
  assert.equal(await page.submission.submit(BODY), "acknowledged");
  assert.deepEqual(calls(page), ["post", "read"]);
});

test("C30: not enough money is final, shown once, and forgotten", async () => {
  const page = start([refusal(402, "insufficient_balance")]);
  assert.equal(await page.submission.submit(BODY), "refused");
  assert.deepEqual(page.view.refusals, ["insufficient_balance"]);
  assert.equal(page.storage.length, 0);
});

test("a refusal of the only POST is final; after a lost one the id is abandoned first", async () => {
  const only = start([refusal(409, "price_changed")]);
  assert.equal(await only.submission.submit(BODY), "refused");
  assert.deepEqual(calls(only), ["post"]);
  const again = start([CUT, NOT_RECEIVED, refusal(409, "price_changed"), ABANDONED]);
  assert.equal(await again.submission.submit(BODY), "ended");
  assert.deepEqual(calls(again), ["post", "read", "post", "abandon"]);
  assert.deepEqual(again.view.refusals, []);
  assert.deepEqual(again.view.ends, ["abandoned"]);
});

test("C04: an id that belongs to another request shows that request and charges nothing for this one", async () => {
  const page = start([refusal(422, "id_reused"), found("processing")]);
  assert.equal(await page.submission.submit(BODY), "acknowledged");
  assert.deepEqual(calls(page), ["post", "read"]);
  assert.deepEqual(page.view.refusals, ["id_reused"]);
});

test("abandon without an answer is repeated and claims nothing about money until it is confirmed", async () => {
  const storage = new FakeStorage();
  let fenced = null;
  const lost = {
    call: "abandon",
    status: 0,
    before: () => {
      fenced = new RequestMemory(storage).find(OWNER, ID).abandoning;
    },
  };
  const page = start([CUT, NOT_RECEIVED, refusal(400, "invalid"), lost, lost, ABANDONED], { storage });
  await page.submission.submit(BODY);
  assert.equal(fenced, true);
  assert.deepEqual(page.view.said.slice(-2), ["abandon_unconfirmed", "abandon_unconfirmed"]);
  assert.deepEqual(page.view.ends, ["abandoned"]);
});

test("abandon answered 409 shows the task that did arrive", async () => {
  const arrived = { call: "abandon", status: 409, contentType: PROBLEM, body: { code: "live" } };
  const page = start([CUT, NOT_RECEIVED, refusal(400, "invalid"), arrived, found("processing")]);
  assert.equal(await page.submission.submit(BODY), "acknowledged");
  assert.deepEqual(page.view.ends, []);
  assert.deepEqual(page.view.tasks, [task("processing")]);
});

test("a page that died while abandoning does not send again after the next load", async () => {
  const storage = new FakeStorage();
  const memory = new RequestMemory(storage);
  memory.remember({ id: ID, owner: OWNER, body: BODY, now: new FakeClock().now() });
  memory.countTry(OWNER, ID);
  memory.markAbandoning(OWNER, ID);
  const page = start([NOT_RECEIVED, ABANDONED], { storage });
  assert.equal(await page.submission.recover(ID), "ended");
  assert.deepEqual(calls(page), ["read", "abandon"]);
});

test("signed out keeps everything and sends nothing more", async () => {
  const page = start([{ call: "post", status: 403, contentType: "text/html" }]);
  assert.equal(await page.submission.submit(BODY), "signed_out");
  assert.deepEqual(page.view.signOuts, [ID]);
  assert.deepEqual(page.memory.find(OWNER, ID).body, BODY);
});

test("a double click sends once", async () => {
  const page = start([{ call: "post", status: 201, contentType: JSON_TYPE, body: task("submitting") }]);
  const answers = await Promise.all([page.submission.submit(BODY), page.submission.submit(BODY)]);
  assert.deepEqual(answers, ["acknowledged", "already_running"]);
  assert.deepEqual(calls(page), ["post"]);
});

test("a request of another owner is never sent or asked about", async () => {
  const storage = new FakeStorage();
  new RequestMemory(storage).remember({ id: ID, owner: OTHER, body: BODY, now: 1 });
  const page = start([], { storage });
  assert.equal(await page.submission.recover(ID), "forgotten");
  assert.deepEqual(calls(page), []);
});

test("a request whose body is lost is asked about until it is old, and then abandoned", async () => {
  const storage = new FakeStorage();
  const page = start([], { storage });
  page.memory.remember({ id: ID, owner: OWNER, body: null, now: page.clock.now() });
  page.memory.countTry(OWNER, ID);
  page.transport.script = [...Array.from({ length: 20 }, () => ({ ...NOT_RECEIVED })), ABANDONED];
  page.transport.answer = ((original) => (call, id, body) => {
    if (call === "abandon") page.transport.script = [ABANDONED];
    return original.call(page.transport, call, id, body);
  })(page.transport.answer);
  assert.equal(await page.submission.recover(ID), "ended");
  assert.equal(calls(page).includes("post"), false);
  assert.ok(page.clock.now() - 1_800_000_000_000 >= 300_000);
  assert.equal(page.view.said[0], "body_lost");
});

test("a browser that refuses to store says so and still submits once", async () => {
  const page = start([{ call: "post", status: 201, contentType: JSON_TYPE, body: task("submitting") }], {
    storage: new FakeStorage({ refuses: true }),
  });
  assert.equal(await page.submission.submit(BODY), "acknowledged");
  assert.deepEqual(page.view.said, ["storage_refused", "sending"]);
});

test("reads that fail are repeated with growing pauses and change nothing, whatever their number", async () => {
  const page = start([
    CUT,
    ...Array.from({ length: 12 }, () => ({ call: "read", status: 502, contentType: "text/html" })),
    found("completed"),
  ]);
  assert.equal(await page.submission.submit(BODY), "acknowledged");
  assert.equal(calls(page).filter((call) => call === "post").length, 1);
  assert.ok(page.view.said.includes("read_failed"));
  assert.equal(page.storage.length, 0);
});

test("a rate limit's Retry-After is waited for before the id is read or sent again", async () => {
  const page = start([
    { call: "post", status: 429, contentType: PROBLEM, body: { code: "rate_limited" }, retryAfter: 20 },
    NOT_RECEIVED,
    { call: "post", status: 201, contentType: JSON_TYPE, body: task("submitting") },
  ]);
  assert.equal(await page.submission.submit(BODY), "acknowledged");
  assert.ok(page.clock.slept[0] >= 20_000);
});
