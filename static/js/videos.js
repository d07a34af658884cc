/** The video page: joins the form, the list, the stored requests and the watcher. */

import { Actions } from "./page/actions.js";
import { Cards, currentPrice, heldMoney } from "./page/cards.js";
import { Composer } from "./page/composer.js";
import { ask } from "./page/dialogs.js";
import { exclusive } from "./page/locks.js";
import { Notices } from "./page/notices.js";
import { Pending } from "./page/pending.js";
import { rawLocalStorage } from "./page/stores.js";
import { Submission } from "./page/submission.js";
import { NEW_VERSION_EVENT, transport } from "./page/transport.js";
import { Watcher } from "./page/watcher.js";
import { readPage } from "./page/words.js";
import { isTransition } from "./rules/announcements.js";
import { decide } from "./rules/decide.js";
import { newClientId } from "./rules/ids.js";
import { RequestMemory, requestIdentity } from "./rules/memory.js";
import { formatMoney, toAmount } from "./rules/money.js";

const PATIENCE_MILLISECONDS = 10 * 60 * 1000; // then people are told that they may close the page
const TIMES_MILLISECONDS = 30_000;

const page = readPage();
const memory = new RequestMemory(rawLocalStorage());
const notices = new Notices(page);
const cards = new Cards(page);
const tasks = new Map(); // the newest state of every task this page has read
let lastRefresh = Date.now();
let wasOffline = false;

const clock = {
  now: () => Date.now(),
  random: Math.random,
  sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
};

const pending = new Pending(page, (body) => composer.fill(body));
const composer = new Composer(page, submit);
const actions = new Actions({ page, transport, apply, removed, hint: (id, text) => cards.hint(id, text) });

const watcher = new Watcher({
  owner: page.owner,
  transport,
  wanted: () => [...new Set([...cards.unfinished(), ...acknowledgedIds()])],
  told,
  failed: (seconds) => notices.show("read_failed", { seconds, time: page.clock(lastRefresh) }),
  refreshed,
  signedOut: () => notices.show("signed_out", { owner: page.owner_name }),
  atLead: recoverAll,
});

const submission = new Submission({
  owner: page.owner,
  memory,
  transport,
  clock,
  exclusive,
  view: {
    say(id, slug, values) {
      if (slug === "storage_refused") return notices.show("storage_refused");
      const text = page.say(slug, { time: page.clock(lastRefresh), ...values });
      const body = memory.find(page.owner, id)?.body;
      if (slug === "sending") return composer.showSending(text);
      sent.get(id)?.("uncertain"); // the form is free again; this request is followed above the list
      return pending.say(id, text, body);
    },
    task(task, id) {
      pending.remove(id);
      notices.hide("storage_refused");
      const body = bodies.get(id);
      if (body && requestIdentity(body) === requestIdentity(composer.chosen())) composer.clearPrompt();
      apply(task, { isOwn: true });
      watcher.share(task);
      sent.get(id)?.("acknowledged");
      watcher.soon();
    },
    refused(id, problem) {
      sent.get(id)?.("refused");
      composer.refuse(problem.message?.text ?? problem.detail ?? problem.title ?? "");
      pending.remove(id);
      if (problem.code === "price_changed" || problem.code === "model_unavailable") void refreshModels();
      // Not enough money is remembered as a task.
      if (problem.task?.chips) apply(problem.task, { isOwn: true });
    },
    ended(id, slug, problem) {
      const text = slug ? page.say(slug) : (problem.message?.text ?? problem.detail);
      sent.get(id)?.("ended");
      pending.end(id, text, bodies.get(id) ?? null);
    },
    signedOut(id) {
      sent.get(id)?.("signed_out");
      notices.show("signed_out", { owner: page.owner_name });
    },
  },
});
const sent = new Map(); // id → tells the form that its request has left or ended
const bodies = new Map(); // kept for "use again" when a request ends without a video

/**
 * The form's wish: ask when the same is already running, then hand over. Resolves when the form is free
 * again.
 */
async function submit(body, price) {
  if (navigator.onLine === false) {
    composer.refuse(page.say("offline"));
    return;
  }
  const same = findSame(body);
  if (same) {
    const elapsed = page.lasting((Date.now() - same.since) / 1000);
    const money = formatMoney(price, page.currency);
    const yes = page.say("another_for", { price: money });
    if (!(await ask("same-dialog", page.say("same_request", { elapsed, price: money }), { yes }))) return;
  }
  bodies.set(body.id, body);
  await new Promise((resolve, reject) => {
    sent.set(body.id, resolve);
    submission.submit(body).then(resolve, reject);
  });
  sent.delete(body.id);
}

function findSame(body) {
  const record = memory.findSame(page.owner, body);
  if (record) return { since: record.created_at };
  const wanted = requestIdentity(body);
  for (const task of tasks.values()) {
    if (["completed", "failed"].includes(task.state)) continue;
    const shown = Object.fromEntries(Object.keys(body).map((name) => [name, task[name]]));
    if (requestIdentity(shown) === wanted) return { since: Date.parse(task.created_at) };
  }
  return null;
}

function acknowledgedIds() {
  return memory
    .listOwn(page.owner)
    .filter((record) => record.acknowledged)
    .map(({ id }) => id);
}

/** What an earlier page has left: ask the server about each. Only the leading tab does. */
function recoverAll() {
  for (const record of memory.listOwn(page.owner)) {
    bodies.set(record.id, record.body);
    if (!record.acknowledged) void submission.recover(record.id);
  }
}

function apply(task, { isOwn = false } = {}) {
  const before = tasks.get(task.id) ?? stateOnPage(task.id);
  tasks.set(task.id, task);
  cards.show(task, { isOwn });
  if (isTransition(before, task)) notices.taskEnded(task);
  if (before?.state !== task.state) void refreshAccount();
  const age = Date.now() - Date.parse(task.created_at);
  const isRunning = ["submitting", "unknown", "processing"].includes(task.state);
  if (isRunning && age > PATIENCE_MILLISECONDS) {
    cards.hint(task.id, page.say("still_running", { amount: heldMoney(task) }));
  } else if (before?.state !== task.state) cards.hint(task.id, "");
}

function stateOnPage(id) {
  const state = cards.find(id)?.dataset.state;
  return state ? { state } : null;
}

/** One entry of the list answer, read by this tab or told by the leading one. */
function told(reading, id) {
  const record = memory.find(page.owner, id);
  if (record && !record.acknowledged && !reading.task) return; // its own submission decides
  const decision = decide(
    reading,
    record ?? { acknowledged: true, tries: 1, created_at: 0, body: null },
    Date.now(),
  );
  if (reading.task) {
    if (record) memory.acknowledge(page.owner, id);
    apply(reading.task);
  } else if (decision.action === "record_gone") {
    cards.end(id, page.say("record_gone"));
  } else if (decision.action === "show") {
    const { message, chips } = reading.problem;
    cards.end(id, message?.text ?? page.say("deleted_elsewhere"), chips?.video);
  }
  if (decision.final) memory.forget(page.owner, id);
}

function removed(id) {
  tasks.delete(id);
  cards.remove(id);
}

function refreshed(account) {
  if (account) return showAccount(account);
  lastRefresh = Date.now();
  notices.hide("read_failed");
  notices.hide("signed_out");
  if (wasOffline) {
    wasOffline = false;
    notices.hide("offline");
    notices.showBriefly("back_online");
  }
}

async function refreshAccount() {
  const answer = await transport.account();
  // Without an answer the last known balance stays.
  if (answer.status !== 200 || typeof answer.body?.balance !== "string") return;
  showAccount(answer.body);
  watcher.shareAccount(answer.body);
}

function showAccount(account) {
  notices.showBalance(account);
  composer.setBalance(account.balance);
}

async function refreshModels() {
  const answer = await transport.models();
  const models = answer.status === 200 ? (answer.body?.results ?? answer.body) : null;
  if (Array.isArray(models)) composer.setModels(models);
}

/** "Try again" of a task that has ended makes a new request, after its price has been agreed to. */
async function tryAgain(task) {
  const price = currentPrice(task, page);
  const money = formatMoney(price, page.currency);
  const yes = page.say("another_for", { price: money });
  if (!(await ask("same-dialog", page.say("try_again_final", { price: money }), { yes }))) return;
  const body = { id: newClientId(), model: task.model, prompt: task.prompt, max_price: toAmount(price) };
  for (const name of ["seconds", "resolution", "aspect_ratio", "audio", "seed", "image_file", "image_url"]) {
    if (task[name] !== null && task[name] !== undefined) body[name] = task[name];
  }
  bodies.set(body.id, body);
  void submission.submit(body);
}

async function useAgain(id) {
  const task = await actions.readTask(id);
  if (!task) return;
  const isFinal = ["completed", "failed"].includes(task.state);
  const pays = cards.find(id)?.querySelector('[data-action="again"]')?.dataset.pays === "yes";
  if (isFinal && pays && currentPrice(task, page) !== null) await tryAgain(task);
  else composer.fill(task);
}

document.getElementById("list").addEventListener("click", (event) => {
  const element = event.target.closest("[data-action]");
  const id = element?.closest("[data-task]")?.dataset.task;
  if (!id || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (element.dataset.action === "again") {
    event.preventDefault();
    void useAgain(id);
  } else if (element.dataset.action === "copy") void actions.copy(id);
});

document.getElementById("list").addEventListener("submit", (event) => {
  const { action } = event.target.dataset;
  const id = event.target.closest("[data-task]")?.dataset.task;
  if (!id || (action !== "cancel" && action !== "delete")) return;
  event.preventDefault();
  void (action === "cancel" ? actions.cancel(id) : actions.remove(id));
});

for (const example of document.querySelectorAll("[data-example]")) {
  example.addEventListener("click", (event) => {
    event.preventDefault();
    composer.fill({ ...composer.chosen(), prompt: example.textContent });
  });
}

document.addEventListener(NEW_VERSION_EVENT, () => notices.show("new_version"));
window.addEventListener("offline", () => {
  wasOffline = true;
  notices.show("offline");
});
window.addEventListener("online", () => {
  notices.hide("offline");
  watcher.soon();
});
if (navigator.onLine === false) {
  wasOffline = true;
  notices.show("offline");
}
if (memory.countForeign(page.owner) > 0) notices.showBriefly("other_owner");

cards.updateTimes(Date.now());
setInterval(() => cards.updateTimes(Date.now()), TIMES_MILLISECONDS);
if (composer.balance === null) void refreshAccount();
watcher.start();
