/** Stand-ins for the browser's storage, time and network. */

export class FakeStorage {
  constructor({ refuses = false, forgets = false } = {}) {
    this.entries = new Map();
    this.refuses = refuses;
    this.forgets = forgets;
  }

  get length() {
    return this.entries.size;
  }

  key(index) {
    return [...this.entries.keys()][index] ?? null;
  }

  getItem(key) {
    return this.entries.get(key) ?? null;
  }

  setItem(key, text) {
    if (this.refuses) throw new DOMException("full", "QuotaExceededError");
    if (!this.forgets) this.entries.set(key, String(text));
  }

  removeItem(key) {
    this.entries.delete(key);
  }

  dump() {
    return Object.fromEntries(this.entries);
  }
}

/** A clock that moves only when slept on. */
export class FakeClock {
  constructor(start = 1_800_000_000_000) {
    this.time = start;
    this.slept = [];
  }

  now() {
    return this.time;
  }

  async sleep(milliseconds) {
    this.slept.push(milliseconds);
    this.time += milliseconds;
  }

  random = () => 0.5;
}

/** Plays a script of answers per call and keeps what was asked; an unscripted call fails the test. */
export class FakeTransport {
  constructor(script) {
    this.script = script;
    this.calls = [];
  }

  async post(body) {
    return this.answer("post", body.id, body);
  }

  async read(id) {
    return this.answer("read", id);
  }

  async abandon(id) {
    return this.answer("abandon", id);
  }

  answer(call, id, body = null) {
    this.calls.push({ call, id, body: body === null ? null : structuredClone(body) });
    const next = this.script.shift();
    if (!next) throw new Error(`unexpected ${call} of ${id}`);
    if (next.call !== call) throw new Error(`expected ${next.call}, got ${call}`);
    next.before?.();
    return {
      status: next.status,
      contentType: next.contentType ?? null,
      body: next.body ?? null,
      retryAfter: next.retryAfter ?? null,
    };
  }
}

export class FakeView {
  constructor() {
    this.said = [];
    this.tasks = [];
    this.refusals = [];
    this.ends = [];
    this.signOuts = [];
  }

  say(_id, slug, values) {
    this.said.push(values.n === undefined ? slug : `${slug} ${values.n}`);
  }

  task(task) {
    this.tasks.push(task);
  }

  refused(_id, problem) {
    this.refusals.push(problem.code);
  }

  ended(_id, slug, problem) {
    this.ends.push(slug ?? problem.code);
  }

  signedOut(id) {
    this.signOuts.push(id);
  }
}
