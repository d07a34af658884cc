import assert from "node:assert/strict";
import { test } from "node:test";

import { isClientId, newClientId } from "../../static/js/rules/ids.js";
import { RequestMemory, canonicalJson, requestIdentity } from "../../static/js/rules/memory.js";
import { FakeStorage } from "./fakes.mjs";

const OWNER = "0b54a1c6-7a3a-4d8e-a3ab-7f1f2c9d8e01";
const OTHER = "0b54a1c6-7a3a-4d8e-a3ab-7f1f2c9d8e02";
const ID = "5f0f7f6e-8c3b-4b0e-9d55-3a5b2a5a7a11";
const BODY = { id: ID, model: "veo3.1", prompt: "a lighthouse", seconds: 8, max_price: "0.400000" };

test("a request is remembered with its owner, body, time and no tries, across page loads", () => {
  const storage = new FakeStorage();
  const { stored } = new RequestMemory(storage).remember({ id: ID, owner: OWNER, body: BODY, now: 17 });
  assert.equal(stored, true);
  assert.deepEqual(new RequestMemory(storage).find(OWNER, ID), {
    id: ID,
    owner: OWNER,
    body: BODY,
    created_at: 17,
    tries: 0,
    acknowledged: false,
    abandoning: false,
  });
});

test("tries, acknowledgement and abandoning are written at once, and the body outlives them", () => {
  const storage = new FakeStorage();
  const memory = new RequestMemory(storage);
  memory.remember({ id: ID, owner: OWNER, body: BODY, now: 1 });
  memory.countTry(OWNER, ID);
  memory.countTry(OWNER, ID);
  memory.acknowledge(OWNER, ID);
  memory.markAbandoning(OWNER, ID);
  const record = new RequestMemory(storage).find(OWNER, ID);
  assert.equal(record.tries, 2);
  assert.equal(record.acknowledged, true);
  assert.equal(record.abandoning, true);
  assert.deepEqual(record.body, BODY);
});

test("an ended request leaves nothing behind", () => {
  const storage = new FakeStorage();
  const memory = new RequestMemory(storage);
  memory.remember({ id: ID, owner: OWNER, body: BODY, now: 1 });
  memory.forget(OWNER, ID);
  assert.equal(storage.length, 0);
  assert.equal(memory.find(OWNER, ID), null);
});

test("another owner's request is counted and neither listed, found nor changed", () => {
  const storage = new FakeStorage();
  const memory = new RequestMemory(storage);
  memory.remember({ id: ID, owner: OTHER, body: BODY, now: 1 });
  const before = storage.dump();
  assert.deepEqual(memory.listOwn(OWNER), []);
  assert.equal(memory.countForeign(OWNER), 1);
  assert.equal(memory.find(OWNER, ID), null);
  assert.equal(memory.countTry(OWNER, ID), null);
  assert.equal(memory.findSame(OWNER, BODY), null);
  assert.deepEqual(storage.dump(), before);
});

test("a storage that refuses is reported and the request lives on in this page", () => {
  for (const storage of [null, new FakeStorage({ refuses: true }), new FakeStorage({ forgets: true })]) {
    const memory = new RequestMemory(storage);
    assert.equal(memory.remember({ id: ID, owner: OWNER, body: BODY, now: 1 }).stored, false);
    assert.equal(memory.countTry(OWNER, ID).tries, 1);
    assert.deepEqual(
      memory.listOwn(OWNER).map((record) => record.id),
      [ID],
    );
    memory.forget(OWNER, ID);
    assert.deepEqual(memory.listOwn(OWNER), []);
  }
});

test("a storage that fails half way loses nothing of this page", () => {
  const storage = new FakeStorage();
  const memory = new RequestMemory(storage);
  memory.remember({ id: ID, owner: OWNER, body: BODY, now: 1 });
  storage.refuses = true;
  assert.equal(memory.countTry(OWNER, ID).tries, 1);
  assert.equal(memory.countTry(OWNER, ID).tries, 2);
});

test("a damaged record is asked about and never sent", () => {
  const texts = [
    "",
    "{",
    "null",
    "[]",
    '"x"',
    `{"id":"other","owner":"${OWNER}"}`,
    `{"id":"${ID}","owner":"${OTHER}","body":{}}`,
  ];
  for (const text of texts) {
    const storage = new FakeStorage();
    storage.setItem(`oncereel.request.${OWNER}/${ID}`, text);
    const [record] = new RequestMemory(storage).listOwn(OWNER);
    assert.equal(record.id, ID);
    assert.equal(record.body, null);
    assert.equal(record.acknowledged, false);
  }
});

test("a body that belongs to another id is not this request's body", () => {
  const storage = new FakeStorage();
  const value = {
    id: ID,
    owner: OWNER,
    body: { ...BODY, id: "another-id" },
    created_at: 1,
    tries: 1,
    acknowledged: false,
  };
  storage.setItem(`oncereel.request.${OWNER}/${ID}`, JSON.stringify(value));
  assert.equal(new RequestMemory(storage).find(OWNER, ID).body, null);
});

test("foreign keys in the storage are left alone", () => {
  const storage = new FakeStorage();
  storage.setItem("theme", "dark");
  storage.setItem("oncereel.draft", "{}");
  assert.deepEqual(new RequestMemory(storage).list(), []);
  assert.equal(storage.length, 2);
});

test("requests are the same when only id, agreed price or the order of fields differ", () => {
  const memory = new RequestMemory(new FakeStorage());
  memory.remember({ id: ID, owner: OWNER, body: BODY, now: 1 });
  const again = {
    seconds: 8,
    prompt: "a lighthouse",
    model: "veo3.1",
    id: newClientId(),
    max_price: "0.500000",
  };
  assert.equal(memory.findSame(OWNER, again).id, ID);
  assert.equal(memory.findSame(OWNER, { ...again, seconds: 4 }), null);
  assert.equal(memory.findSame(OWNER, { ...again, prompt: "a lighthouse " }), null);
});

test("canonical JSON sorts keys at every depth and keeps the order of lists", () => {
  assert.equal(canonicalJson({ b: [2, { d: 1, c: null }], a: "é" }), '{"a":"é","b":[2,{"c":null,"d":1}]}');
  assert.equal(canonicalJson({ a: undefined, b: 1 }), '{"b":1}');
  assert.notEqual(canonicalJson([1, 2]), canonicalJson([2, 1]));
  assert.equal(requestIdentity({ id: 1, max_price: 2, prompt: "x" }), '{"prompt":"x"}');
});

test("client ids are lower-case UUIDs, also where randomUUID is missing, and none is made without randomness", () => {
  const made = new Set(Array.from({ length: 200 }, () => newClientId()));
  assert.equal(made.size, 200);
  for (const id of made) assert.ok(isClientId(id));
  const plain = newClientId({ getRandomValues: (bytes) => bytes.fill(0xff) });
  assert.equal(plain, "ffffffff-ffff-4fff-bfff-ffffffffffff");
  assert.throws(() => newClientId({}), /randomness/);
  assert.equal(isClientId(ID.toUpperCase()), false);
});
