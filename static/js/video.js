/** The page of one video: keeps it up to date; when it ends, the whole page is read again once. */

import { Actions } from "./page/actions.js";
import { fillCard, heldMoney } from "./page/cards.js";
import { Notices } from "./page/notices.js";
import { NEW_VERSION_EVENT, transport } from "./page/transport.js";
import { Watcher } from "./page/watcher.js";
import { readPage } from "./page/words.js";

const FINAL = ["completed", "failed"];
const PATIENCE_MILLISECONDS = 10 * 60 * 1000;

const page = readPage();
const notices = new Notices(page);
const box = document.querySelector(".detail");
const id = box.dataset.task;
let isStopped = false;
let lastRefresh = Date.now();

const actions = new Actions({
  page,
  transport,
  apply,
  hint,
  removed: () => location.assign("/videos/"),
});

const watcher = new Watcher({
  owner: page.owner,
  transport,
  wanted: () => (isStopped || FINAL.includes(box.dataset.state) ? [] : [id]),
  told(reading, entryId) {
    if (entryId !== id) return;
    if (reading.task) apply(reading.task);
    else if (reading.kind === "gone") stop(reading.problem.message?.text ?? page.say("deleted_elsewhere"));
    else if (reading.kind === "not_received") stop(page.say("record_gone"));
  },
  failed: (seconds) => notices.show("read_failed", { seconds, time: page.clock(lastRefresh) }),
  refreshed(account) {
    if (account) return notices.showBalance(account);
    lastRefresh = Date.now();
    notices.hide("read_failed");
    notices.hide("signed_out");
  },
  signedOut: () => notices.show("signed_out", { owner: page.owner_name }),
  atLead() {}, // stored requests are the video page's to follow
});

function apply(task) {
  const hasEnded = !FINAL.includes(box.dataset.state) && FINAL.includes(task.state);
  fillCard(box, task, page);
  const isPatient =
    !FINAL.includes(task.state) && Date.now() - Date.parse(task.created_at) > PATIENCE_MILLISECONDS;
  hint(id, isPatient ? page.say("still_running", { amount: heldMoney(task) }) : "");
  // The timeline and the money table are the server's to write; an ended task changes no more.
  if (hasEnded) location.reload();
}

function stop(text) {
  isStopped = true;
  box.querySelector(".message").textContent = text;
  hint(id, "");
}

function hint(_id, text) {
  const element = box.querySelector("[data-hint]");
  element.textContent = text;
  element.hidden = text === "";
}

box.addEventListener("submit", (event) => {
  const { action } = event.target.dataset;
  if (action !== "cancel" && action !== "delete") return;
  event.preventDefault();
  void (action === "cancel" ? actions.cancel(id) : actions.remove(id));
});
document.addEventListener(NEW_VERSION_EVENT, () => notices.show("new_version"));
window.addEventListener("offline", () => notices.show("offline"));
window.addEventListener("online", () => {
  notices.hide("offline");
  watcher.soon();
});
if (!FINAL.includes(box.dataset.state)) watcher.start();
