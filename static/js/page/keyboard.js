/** Keys. Single keys can be switched off, never act while typing, and never spend money. */

import { localStore } from "./stores.js";

const SWITCH = "oncereel.single-keys";
const GO = { v: "/videos/", b: "/billing/", a: "/account/" };
const GO_WAIT_MILLISECONDS = 1500;

export function startKeyboard() {
  const help = document.getElementById("keyboard-help");
  const choice = document.getElementById("single-keys");
  const store = localStore();
  if (choice) {
    choice.checked = store.get(SWITCH) !== "off";
    choice.addEventListener("change", () => store.set(SWITCH, choice.checked ? "on" : "off"));
  }
  let goUntil = 0;
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    const withControl = event.ctrlKey || event.metaKey;
    if (withControl && event.key.toLowerCase() === "k" && focusOn("model")) return event.preventDefault();
    if (withControl || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]"))
      return;
    if (choice && !choice.checked) return;
    if (performance.now() < goUntil && GO[event.key]) {
      goUntil = 0;
      location.assign(GO[event.key]);
      return;
    }
    goUntil = event.key === "g" ? performance.now() + GO_WAIT_MILLISECONDS : 0;
    if (event.key === "?") help?.showModal();
    else if (event.key === "/" && focusOn("search")) event.preventDefault();
    else if (event.key === "j" || event.key === "k") moveCard(event.key === "j" ? 1 : -1);
    else if (event.key === "r") pressInCard("again");
    else if (event.key === "c") pressInCard("copy");
  });
}

function isTyping(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

function focusOn(id) {
  const element = document.getElementById(id);
  element?.focus();
  return Boolean(element);
}

function moveCard(step) {
  const cards = [...document.querySelectorAll(".list [data-task]")];
  if (cards.length === 0) return;
  const current = cards.indexOf(document.activeElement?.closest("[data-task]"));
  const next = current === -1 ? 0 : Math.min(cards.length - 1, Math.max(0, current + step));
  cards[next].focus();
}

function pressInCard(action) {
  const card = document.activeElement?.closest("[data-task]");
  const button = card?.querySelector(`[data-action="${action}"]`);
  if (button && !button.hidden) button.click();
}
