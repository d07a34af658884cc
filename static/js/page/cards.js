/** The cards of the list: filled from tasks of the API, updated in place, moved without taking the focus. */

import { formatMoney, priceOf, toMicros } from "../rules/money.js";

const FINAL = ["completed", "failed"];
// The same input would be refused again.
const EDIT_CODES = ["input_invalid", "prompt_refused", "image_refused"];
const NO_RETRY_CODES = ["output_withheld", "output_withheld_charged", "output_withheld_goodwill"];
const SCROLLED_PIXELS = 240; // a reader this far down is reading: new rows wait behind a button

export class Cards {
  constructor(page) {
    this.page = page;
    this.template = document.getElementById("card-template");
    this.pill = document.getElementById("new-rows");
    this.waiting = [];
    this.pill?.addEventListener("click", () => this.showWaiting());
    this.observer = new IntersectionObserver((entries) => {
      // First frames are fetched for what is seen only.
      for (const { isIntersecting, target } of entries) if (isIntersecting) target.preload = "metadata";
    });
    for (const video of document.querySelectorAll(".media video")) this.observer.observe(video);
    document.addEventListener("play", (event) => pauseOthers(event.target), true);
  }

  find(id) {
    return document.querySelector(`[data-task="${CSS.escape(id)}"]`);
  }

  /** Ids of the unfinished tasks on the page. */
  unfinished() {
    return [...document.querySelectorAll("[data-task]")]
      .filter(
        ({ dataset }) => dataset.task && dataset.state && !dataset.settled && !FINAL.includes(dataset.state),
      )
      .map((card) => card.dataset.task);
  }

  /** Show a task as it now is. `isOwn`: the person has just asked for it, so it is put in sight at once. */
  show(task, { isOwn = false } = {}) {
    let card = this.find(task.id);
    const isNew = !card;
    if (isNew) {
      if (!this.template) return;
      card = this.template.content.firstElementChild.cloneNode(true);
      for (const element of card.querySelectorAll("[data-script]")) element.hidden = false;
    }
    const wasFinal = FINAL.includes(card.dataset.state);
    fillCard(card, task, this.page);
    const video = card.querySelector("video");
    if (video) this.observer.observe(video);
    if (isNew && !isOwn && window.scrollY > SCROLLED_PIXELS) this.wait(card);
    else if (isNew) this.insert(card);
    else if (!wasFinal && FINAL.includes(task.state)) this.insert(card);
    this.count();
  }

  wait(card) {
    this.waiting = this.waiting.filter((other) => other.dataset.task !== card.dataset.task);
    this.waiting.push(card);
    const n = this.waiting.length;
    this.pill.textContent = this.page.say(n === 1 ? "new_rows_one" : "new_rows_many", { n });
    this.pill.hidden = false;
  }

  showWaiting() {
    for (const card of this.waiting) this.insert(card);
    const [first] = this.waiting;
    this.waiting = [];
    this.pill.hidden = true;
    this.count();
    first?.focus();
  }

  insert(card) {
    const group = document.getElementById(FINAL.includes(card.dataset.state) ? "finished" : "running");
    const cards = group?.querySelector(".cards");
    if (!cards) return; // the page of one video has no groups
    const focused = card.contains(document.activeElement) ? document.activeElement : null;
    cards.prepend(card);
    focused?.focus({ preventScroll: true });
  }

  remove(id) {
    const card = this.find(id);
    if (!card) return;
    const neighbour =
      card.nextElementSibling ?? card.previousElementSibling ?? document.getElementById("content");
    const hadFocus = card.contains(document.activeElement);
    card.remove();
    if (hadFocus) neighbour.focus({ preventScroll: true });
    this.count();
  }

  hint(id, text) {
    const hint = this.find(id)?.querySelector("[data-hint]");
    if (!hint) return;
    if (hint.textContent !== text) hint.textContent = text;
    hint.hidden = text === "";
  }

  /** The record is gone: say so in place of its last state, and ask about it no more. */
  end(id, text, chip = null) {
    const card = this.find(id);
    if (!card) return;
    card.dataset.settled = "yes";
    if (chip) fillChip(card.querySelector('[data-chip="video"]'), chip);
    setText(card.querySelector(".message"), text);
    this.hint(id, "");
  }

  count() {
    let total = 0;
    for (const name of ["running", "finished"]) {
      const group = document.getElementById(name);
      if (!group) return;
      const n = group.querySelectorAll(".cards > [data-task]").length;
      total += n;
      group.hidden = n === 0;
      const counter = group.querySelector("[data-count]");
      if (counter) counter.textContent = String(n);
    }
    const empty = document.getElementById("empty");
    if (empty) empty.hidden = total > 0;
  }

  updateTimes(now) {
    for (const element of document.querySelectorAll("time[data-relative]")) {
      const moment = Date.parse(element.dateTime);
      if (Number.isNaN(moment)) continue;
      const text = this.page.ago(moment, now);
      if (element.textContent !== text) element.textContent = text;
      element.title = this.page.exact(moment);
    }
  }
}

/** Write a task into its card. Texts and chips come from the API as they are. */
export function fillCard(card, task, page) {
  card.dataset.task = task.id;
  card.dataset.state = task.state;
  fillChip(card.querySelector('[data-chip="video"]'), task.chips.video);
  fillChip(card.querySelector('[data-chip="money"]'), task.chips.money);
  setText(card.querySelector(".message"), task.message.text);
  fillMedia(card.querySelector(".media"), task);
  const prompt = card.querySelector(".prompt a");
  if (prompt) {
    setText(prompt, task.prompt);
    prompt.href = `/videos/${task.id}/`;
  }
  const settings = card.querySelector("[data-settings]");
  if (settings) setText(settings, describeSettings(task));
  const time = card.querySelector("time[data-relative]");
  if (time) {
    time.dateTime = task.created_at;
    setText(time, page.ago(Date.parse(task.created_at), Date.now()));
  }
  fillActions(card, task, page);
}

function describeSettings(task) {
  return [task.model, task.seconds ? `${task.seconds} s` : null, task.resolution].filter(Boolean).join(" · ");
}

function fillChip(element, chip) {
  const solid = chip.is_solid || chip.shape === "triangle";
  const className = `chip tone-${chip.tone}${solid ? " solid" : ""}`;
  if (element.className !== className) element.className = className;
  setShape(element.querySelector("use"), chip.shape);
  setText(element.querySelector("span"), chip.word);
}

function fillMedia(media, task) {
  media.className = `media tone-${task.chips.video.tone}`;
  const progress = media.querySelector("progress");
  const isKnown = task.state === "processing" && task.progress !== null && task.progress !== undefined;
  progress.hidden = !isKnown;
  if (isKnown) progress.value = task.progress;
  const url = task.result?.url ?? null;
  const video = media.querySelector("video");
  if (url === null) {
    const shape = media.querySelector(".shape svg");
    if (!shape) return;
    setShape(shape.querySelector("use"), task.chips.video.shape);
    shape.classList.toggle("spins", task.chips.video.shape === "ring-arc");
    return;
  }
  if (video) return; // a running player is not touched by an address that was signed anew
  const player = document.createElement("video");
  Object.assign(player, { controls: true, preload: "none", playsInline: true, src: url });
  media.querySelector(".shape")?.remove();
  media.prepend(player);
}

function fillActions(card, task, page) {
  const isFinal = FINAL.includes(task.state);
  for (const link of card.querySelectorAll('[data-action="download"]')) {
    link.hidden = !task.result?.url;
    if (task.result?.url) link.href = task.result.url;
  }
  const open = card.querySelector('[data-action="open"]');
  if (open) open.href = `/videos/${task.id}/`;
  for (const name of ["cancel", "delete"]) {
    const form = card.querySelector(`[data-action="${name}"]`);
    if (!form) continue;
    form.action = `/videos/${task.id}/${name}`;
    form.hidden = name === "cancel" ? !task.cancel?.possible : !isFinal;
  }
  const again = card.querySelector('[data-action="again"]');
  if (again) fillAgain(again, task, page);
}

function fillAgain(link, task, page) {
  const code = task.error?.code;
  link.href = `/videos/?again=${task.id}#composer`;
  link.hidden = NO_RETRY_CODES.includes(code);
  const price = task.error?.retryable ? currentPrice(task, page) : null;
  const paysAtOnce = price !== null && !EDIT_CODES.includes(code);
  link.dataset.pays = paysAtOnce ? "yes" : "no";
  let text = page.say("use_again");
  if (EDIT_CODES.includes(code)) text = page.say("edit_and_try_again");
  else if (paysAtOnce) text = page.say("try_again", { price: formatMoney(price, page.currency) });
  setText(link.querySelector("span") ?? link, text);
}

/** What the same settings cost today, or null when they are not sold. */
export function currentPrice(task, page) {
  const model = (page.models ?? []).find((candidate) => candidate.model === task.model);
  return model && model.available ? priceOf(model, task) : null;
}

/** The sum a task holds, as text. */
export function heldMoney(task) {
  return formatMoney(toMicros(task.charge.amount), task.charge.currency);
}

function setShape(use, shape) {
  const href = `#shape-${shape}`;
  if (use.getAttribute("href") !== href) use.setAttribute("href", href);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function pauseOthers(playing) {
  for (const video of document.querySelectorAll("video")) if (video !== playing) video.pause();
}
