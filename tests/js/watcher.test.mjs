import assert from "node:assert/strict";
import { test } from "node:test";

import { Watcher } from "../../static/js/page/watcher.js";

const OWNER = "0b54a1c6-7a3a-4d8e-a3ab-7f1f2c9d8e01";
const ids = (count) => Array.from({ length: count }, (_, n) => `task-${String(n).padStart(6, "0")}`);
const running = (id, poll = 5) => ({ id, state: "processing", poll_after_seconds: poll });

function watch(answers) {
  const heard = { asked: [], told: [], failed: [], refreshed: 0, signedOut: 0, sent: [] };
  const watcher = new Watcher({
    owner: OWNER,
    channel: { addEventListener() {}, postMessage: (message) => heard.sent.push(message) },
    transport: {
      async readMany(asked) {
        heard.asked.push(asked);
        const answer = answers.shift();
        return typeof answer === "function" ? answer(asked) : answer;
      },
    },
    wanted: () => [],
    told: (reading, id) => heard.told.push([reading.kind, id]),
    failed: (seconds) => heard.failed.push(seconds),
    refreshed: () => (heard.refreshed += 1),
    signedOut: () => (heard.signedOut += 1),
    atLead() {},
  });
  return { watcher, heard };
}

const list = (results) => ({
  status: 200,
  contentType: "application/json",
  body: { results, next_cursor: null },
  retryAfter: null,
});

test("many tasks are read in requests of at most one hundred, each once", async () => {
  const answer = (asked) => list(asked.map((id) => running(id)));
  const { watcher, heard } = watch([answer, answer, answer]);
  assert.equal(await watcher.readAll(ids(250)), 5);
  assert.deepEqual(
    heard.asked.map((asked) => asked.length),
    [100, 100, 50],
  );
  assert.deepEqual(heard.asked.flat(), ids(250));
  assert.equal(heard.told.length, 250);
});

test("the pause is the shortest that the server asks for, and never under a second", async () => {
  const { watcher } = watch([
    list([running("task-a", 9), running("task-b", 4)]),
    list([running("task-a", 0.01)]),
  ]);
  assert.equal(await watcher.readAll(["task-a", "task-b"]), 4);
  assert.equal(await watcher.readAll(["task-a"]), 1);
});

test("failed reads are told after the third, with Retry-After honoured, and forgotten by a good one", async () => {
  const bad = {
    status: 503,
    contentType: "application/problem+json",
    body: { code: "unavailable" },
    retryAfter: 40,
  };
  const lost = { status: 0, contentType: null, body: null, retryAfter: null };
  const portal = { status: 200, contentType: "text/html", body: null, retryAfter: null };
  const { watcher, heard } = watch([lost, portal, bad, list([]), lost]);
  for (let n = 0; n < 3; n += 1) await watcher.readAll(["task-a"]);
  assert.equal(heard.failed.length, 1);
  assert.ok(heard.failed[0] >= 40 && heard.failed[0] <= 48);
  await watcher.readAll(["task-a"]);
  await watcher.readAll(["task-a"]);
  assert.equal(heard.failed.length, 1);
  assert.deepEqual(heard.told, []);
});

test("signed out is said, and no task is touched", async () => {
  const { watcher, heard } = watch([
    { status: 401, contentType: "application/problem+json", body: {}, retryAfter: null },
  ]);
  assert.equal(await watcher.readAll(["task-a"]), 30);
  assert.equal(heard.signedOut, 1);
  assert.deepEqual(heard.told, []);
});

test("answers are shared with the owner's other tabs, and messages of another owner's tabs are ignored", async () => {
  const { watcher, heard } = watch([list([running("task-a")])]);
  await watcher.readAll(["task-a"]);
  assert.deepEqual(heard.sent, [{ owner: OWNER, kind: "entries", entries: [running("task-a")] }]);
  heard.told.length = 0;
  watcher.hear({ owner: "someone-else", kind: "entries", entries: [running("task-b")] });
  assert.deepEqual(heard.told, []);
  watcher.hear({ owner: OWNER, kind: "entries", entries: [running("task-b")] });
  assert.deepEqual(heard.told, [["running", "task-b"]]);
});

test("the leader also reads what the other tabs want", () => {
  const { watcher } = watch([]);
  watcher.isLeader = true;
  watcher.hear({ owner: OWNER, kind: "want", ids: ["task-a", "task-b"] });
  assert.deepEqual(watcher.ids(), ["task-a", "task-b"]);
});
