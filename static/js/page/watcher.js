/**
 * Keeps unfinished tasks up to date: one tab reads them all in one request and tells the others.
 *
 * Answers are told as they are; each tab decides by the rules what they mean for it.
 */

import { SAY_AFTER_FAILED_READS, backoff, classifyEntry } from "../rules/decide.js";
import { whenLeader } from "./locks.js";

const CHANNEL = "oncereel-videos";
const LEADER = "oncereel-leader"; // with the owner: a stale tab of another account leads nobody else
const MOST_IDS = 100; // of one request
const SHORTEST_SECONDS = 1;
const USUAL_SECONDS = 3;
const HIDDEN_SECONDS = 30;
const INTEREST_MILLISECONDS = 90_000; // after that, ids of a tab that has said nothing are dropped

export class Watcher {
  /**
   * @param owner id of the signed-in user; other owners' tabs are not listened to
   * @param transport with `readMany(ids)`
   * @param wanted `() → ids` this page wants to know about
   * @param told `(reading, id)` for every entry; `failed(failures, seconds)`; `refreshed(body)`;
   *   `signedOut()`
   */
  constructor({
    owner,
    transport,
    wanted,
    told,
    failed,
    refreshed,
    signedOut,
    atLead,
    channel = openChannel(),
  }) {
    Object.assign(this, { owner, transport, wanted, told, failed, refreshed, signedOut, atLead });
    this.isLeader = false;
    this.timer = null;
    this.nextAt = 0;
    this.failures = 0;
    this.isReading = false;
    this.others = new Map(); // id → until when another tab wants it
    this.channel = channel;
    this.channel?.addEventListener("message", (event) => this.hear(event.data));
  }

  start() {
    whenLeader(`${LEADER}-${this.owner}`, () => {
      this.isLeader = true;
      this.atLead();
      this.soon();
    });
    this.announce();
    setInterval(() => this.announce(), INTEREST_MILLISECONDS / 3);
    setInterval(() => this.tick(), USUAL_SECONDS * 1000);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.soon();
    });
    window.addEventListener("pagehide", () => clearTimeout(this.timer));
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) this.soon();
    });
  }

  /** Read now: a task was added, the page came back, or the network did. */
  soon() {
    if (!this.isLeader) {
      this.announce();
      this.channel?.postMessage({ owner: this.owner, kind: "read_soon" });
      return;
    }
    clearTimeout(this.timer);
    if (!this.isReading) void this.read();
  }

  /** A hidden leader is slow by itself; a visible tab that waits for something keeps it awake. */
  tick() {
    if (this.isLeader || document.hidden || this.wanted().length === 0) return;
    this.channel?.postMessage({ owner: this.owner, kind: "tick" });
  }

  /** Tell the other tabs something that this one has learned by itself. */
  share(entry) {
    this.channel?.postMessage({ owner: this.owner, kind: "entries", entries: [entry] });
  }

  announce() {
    if (!this.isLeader) this.channel?.postMessage({ owner: this.owner, kind: "want", ids: this.wanted() });
  }

  hear(message) {
    if (message?.owner !== this.owner) return;
    if (message.kind === "entries")
      for (const entry of message.entries) this.told(classifyEntry(entry), entry.id);
    else if (message.kind === "account") this.refreshed(message.account);
    else if (!this.isLeader) return;
    else if (message.kind === "want") {
      for (const id of message.ids) this.others.set(id, Date.now() + INTEREST_MILLISECONDS);
    } else if (message.kind === "read_soon") this.soon();
    else if (message.kind === "tick" && Date.now() >= this.nextAt) this.soon();
  }

  ids() {
    const now = Date.now();
    for (const [id, until] of this.others) if (until < now) this.others.delete(id);
    return [...new Set([...this.wanted(), ...this.others.keys()])];
  }

  async read() {
    this.isReading = true;
    let seconds = USUAL_SECONDS;
    try {
      const ids = this.ids();
      if (ids.length === 0 || navigator.onLine === false) seconds = HIDDEN_SECONDS;
      else seconds = await this.readAll(ids);
    } finally {
      this.isReading = false;
      this.nextAt = Date.now() + seconds * 1000; // what the server asked for holds for every tab
      if (document.hidden) seconds = Math.max(seconds, HIDDEN_SECONDS);
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.read(), seconds * 1000);
    }
  }

  /** Read in portions; resolves to the pause in seconds until the next round. */
  async readAll(ids) {
    let pause = Infinity;
    for (let start = 0; start < ids.length; start += MOST_IDS) {
      const answer = await this.transport.readMany(ids.slice(start, start + MOST_IDS));
      if (answer.status === 401 || answer.status === 403) {
        this.signedOut();
        return HIDDEN_SECONDS;
      }
      const entries =
        answer.status === 200 && Array.isArray(answer.body?.results) ? answer.body.results : null;
      if (!entries) {
        this.failures += 1;
        const seconds = backoff(this.failures, answer.retryAfter, Math.random) / 1000;
        if (this.failures >= SAY_AFTER_FAILED_READS) this.failed(Math.ceil(seconds));
        return seconds;
      }
      this.channel?.postMessage({ owner: this.owner, kind: "entries", entries });
      for (const entry of entries) {
        this.told(classifyEntry(entry), entry.id);
        if (entry.poll_after_seconds > 0) pause = Math.min(pause, entry.poll_after_seconds);
        if (["completed", "failed"].includes(entry.state) || entry.code) this.others.delete(entry.id);
      }
    }
    this.failures = 0;
    this.refreshed(null);
    return Math.max(SHORTEST_SECONDS, Number.isFinite(pause) ? pause : USUAL_SECONDS);
  }

  /** The balance has changed: the other tabs show it too. */
  shareAccount(account) {
    this.channel?.postMessage({ owner: this.owner, kind: "account", account });
  }
}

function openChannel() {
  return typeof BroadcastChannel === "function" ? new BroadcastChannel(CHANNEL) : null;
}
