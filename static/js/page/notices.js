/** The strip under the top bar, the one live region, the title and the balance pill. */

import { announcementKey, summarise } from "../rules/announcements.js";
import { formatAmount, formatMoney, toMicros } from "../rules/money.js";

const MERGE_MILLISECONDS = 1000; // what ends within a second is told as one sentence
const BRIEF_MILLISECONDS = 8000;
// Only the most important notice is shown.
const RANK = [
  "offline",
  "signed_out",
  "storage_refused",
  "read_failed",
  "other_owner",
  "new_version",
  "back_online",
];

export class Notices {
  constructor(page) {
    this.page = page;
    const strip = document.getElementById("notices");
    this.box = strip.querySelector("div");
    this.text = this.box.querySelector("span");
    this.spoken = strip.querySelector("p");
    this.shown = new Map();
    this.ended = [];
    this.timer = null;
    this.unseen = 0;
    this.title = document.title;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.clearTitle();
    });
  }

  show(slug, values = {}) {
    this.shown.set(slug, this.page.say(slug, values));
    this.render();
  }

  hide(slug) {
    if (this.shown.delete(slug)) this.render();
  }

  showBriefly(slug) {
    this.show(slug);
    setTimeout(() => this.hide(slug), BRIEF_MILLISECONDS);
  }

  render() {
    const slug = RANK.find((candidate) => this.shown.has(candidate));
    const text = slug ? this.shown.get(slug) : "";
    if (this.text.textContent !== text) this.text.textContent = text;
    this.box.hidden = !slug;
  }

  /** A task has ended: spoken with the others of this second, and counted in the title of a hidden page. */
  taskEnded(task) {
    this.ended.push(task);
    if (document.hidden && task.state === "completed") {
      this.unseen += 1;
      document.title = this.page.say("title_ready", { n: this.unseen });
    }
    this.timer ??= setTimeout(() => this.speakEnded(), MERGE_MILLISECONDS);
  }

  speakEnded() {
    this.timer = null;
    const summary = summarise(this.ended);
    this.ended = [];
    const key = announcementKey(summary);
    if (!key) return;
    const sum = formatMoney(summary.returnedMicros, this.page.currency);
    this.speak(this.page.say(key, { n: summary.ready, m: summary.failed, sum }));
  }

  speak(text) {
    this.spoken.textContent = text;
  }

  clearTitle() {
    this.unseen = 0;
    document.title = this.title;
  }

  /** @param account `{balance, held}` of the API */
  showBalance(account) {
    const available = document.querySelector("#balance-available data");
    const held = document.getElementById("balance-held");
    if (!available || !held) return;
    available.textContent = formatAmount(toMicros(account.balance));
    held.textContent = this.page.say("held", { amount: formatAmount(toMicros(account.held)) });
  }
}
