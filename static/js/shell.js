/** What every page has: theme switch, menus that close, list of keys. */

import { startKeyboard } from "./page/keyboard.js";
import { exact } from "./rules/time.js";

const THEME_COOKIE = "oncereel_theme"; // read by the server, so that a page never flashes in the other theme
const YEAR_SECONDS = 31_536_000;

function chooseTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const lifetime = theme ? YEAR_SECONDS : 0;
  document.cookie = `${THEME_COOKIE}=${theme}; path=/; max-age=${lifetime}; samesite=lax`;
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
  }
}

/**
 * A menu closes by Escape, by a click elsewhere, and after a choice; focus returns to its opener by Escape.
 */
function startMenus() {
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details[data-menu][open]")) {
      const inside = menu.contains(event.target);
      if (!inside || event.target.closest("[data-action], [data-theme-choice]")) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = document.querySelector("details[data-menu][open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

/** Server-rendered times are in the server's zone; people read their own. */
function localiseTimes() {
  for (const element of document.querySelectorAll("time[data-exact]")) {
    const moment = Date.parse(element.dateTime);
    if (Number.isNaN(moment)) continue;
    element.textContent = exact(moment, document.documentElement.lang, element.dataset.exact || "medium");
  }
}

document.documentElement.classList.add("with-script");
for (const element of document.querySelectorAll("[data-script]")) element.hidden = false;
for (const button of document.querySelectorAll("[data-theme-choice]")) {
  button.addEventListener("click", () => chooseTheme(button.dataset.themeChoice));
}
for (const button of document.querySelectorAll("[data-open]")) {
  button.addEventListener("click", () => document.getElementById(button.dataset.open).showModal());
}
startMenus();
localiseTimes();
startKeyboard();
