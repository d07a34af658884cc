/**
 * One request from the click to its known end. Everything it touches is handed in, so that it runs without
 * a browser:
 *
 * memory    RequestMemory
 * transport `post(body)`, `read(id)`, `abandon(id)` → `{status, contentType, body, retryAfter}`, status 0 =
 * no answer
 * clock     `now()` in milliseconds; `sleep(milliseconds)`; `random()`
 * view      `say(id, slug, values)`, `task(task, id)`, `refused(id, problem)`, `ended(id, slug, problem)`,
 * `signedOut(id)`
 * exclusive `(name, work)` → runs work unless another tab is at it; default: just runs it
 */

import { afterAbandon, afterPost, backoff, classify, decide, memoryKind } from "../rules/decide.js";

export class Submission {
  constructor({ owner, memory, transport, clock, view, exclusive = (_name, work) => work() }) {
    Object.assign(this, { owner, memory, transport, clock, view, exclusive });
    this.active = new Set(); // ids this page is at work on: a second click or recovery joins nothing
  }

  /** Send a new request. Written down first; resolves when it is acknowledged, refused or ended. */
  async submit(body) {
    if (this.active.has(body.id)) return "already_running";
    const { stored } = this.memory.remember({ id: body.id, owner: this.owner, body, now: this.clock.now() });
    if (!stored) this.view.say(body.id, "storage_refused", {});
    return this.alone(body.id, () => this.send(body.id));
  }

  /** Find out what became of a request that an earlier page has left behind. */
  async recover(id) {
    if (this.active.has(id)) return "already_running";
    return this.alone(id, () => this.follow(id));
  }

  async alone(id, work) {
    this.active.add(id);
    try {
      return await this.exclusive(`oncereel-request-${id}`, work);
    } finally {
      this.active.delete(id);
    }
  }

  async send(id) {
    const record = this.memory.countTry(this.owner, id);
    // A record of another owner is not found under ours, so it can't be sent from here.
    if (!record || memoryKind(record) !== "kept" || record.abandoning) return this.follow(id);
    if (record.tries <= 1) this.view.say(id, "sending", {});
    const answer = await this.transport.post(record.body);
    const decision = afterPost(answer, record);
    switch (decision.action) {
      case "acknowledged":
        this.memory.acknowledge(this.owner, id);
        return this.show(answer.body, id);
      case "refused":
        this.memory.forget(this.owner, id);
        this.view.refused(id, answer.body);
        return "refused";
      case "abandon":
        return this.abandon(id);
      case "sign_in":
        this.view.signedOut(id);
        return "signed_out";
      case "read":
        this.view.refused(id, answer.body);
        return this.follow(id);
      default:
        this.view.say(id, decision.say, {});
        return this.follow(id, answer.retryAfter);
    }
  }

  /** Read until the request is acknowledged or has ended; resend or abandon where the table says so. */
  async follow(id, retryAfter = null) {
    let failures = 0;
    let waits = 0;
    let pause = retryAfter;
    for (;;) {
      if (pause !== null) await this.clock.sleep(backoff(1, pause, this.clock.random));
      pause = null;
      const record = this.memory.find(this.owner, id);
      if (!record) return "forgotten"; // another tab has seen its end
      const answer = await this.transport.read(id);
      const reading = classify(answer.status, answer.contentType, answer.body);
      failures = reading.kind === "failed_read" ? failures + 1 : 0;
      const decision = decide(reading, { ...record, failures }, this.clock.now());
      if (decision.acknowledges) this.memory.acknowledge(this.owner, id);
      switch (decision.action) {
        case "poll":
          return this.show(reading.task, id);
        case "show":
          if (reading.task) return this.show(reading.task, id);
          this.memory.forget(this.owner, id);
          this.view.ended(id, null, reading.problem);
          return "ended";
        case "record_gone":
          this.memory.forget(this.owner, id);
          this.view.ended(id, "record_gone", null);
          return "ended";
        case "sign_in":
          this.view.signedOut(id);
          return "signed_out";
        case "abandon":
          return this.abandon(id);
        case "resend":
          this.view.say(id, "resending", { n: decision.n });
          await this.clock.sleep(backoff(decision.n, answer.retryAfter, this.clock.random));
          return this.send(id);
        default: {
          waits += 1;
          const milliseconds = backoff(waits, answer.retryAfter, this.clock.random);
          if (decision.say) this.view.say(id, decision.say, { seconds: Math.ceil(milliseconds / 1000) });
          await this.clock.sleep(milliseconds);
        }
      }
    }
  }

  /** Ask for the fence until it is certain. Nothing of this id is sent from now on. */
  async abandon(id) {
    this.memory.markAbandoning(this.owner, id);
    for (let tries = 1; ; tries += 1) {
      const answer = await this.transport.abandon(id);
      const decision = afterAbandon(answer, id);
      if (decision.action === "sign_in") {
        this.view.signedOut(id);
        return "signed_out";
      }
      if (decision.action === "arrived") {
        this.memory.acknowledge(this.owner, id);
        return this.follow(id);
      }
      if (decision.final) {
        this.memory.forget(this.owner, id);
        this.view.ended(id, decision.say, decision.say ? null : answer.body);
        return "ended";
      }
      this.view.say(id, decision.say, {});
      await this.clock.sleep(backoff(tries, answer.retryAfter, this.clock.random));
    }
  }

  show(task, id) {
    if (task.state === "completed" || task.state === "failed") this.memory.forget(this.owner, id);
    this.view.task(task, id);
    return "acknowledged";
  }
}
