/** The page's facts and its sentences, which the server gives in the reader's language. */

import { ago, clock, day, exact, lasting } from "../rules/time.js";

/** The JSON block of this id, or an empty object when the page has none. */
function block(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : {};
}

/** Put values into the {names} of a sentence; an unknown name stays visible instead of vanishing. */
export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

export function readPage() {
  const sentences = block("oncereel-strings");
  const labels = {};
  const template = document.getElementById("oncereel-labels");
  for (const element of template?.content.querySelectorAll("[data-key]") ?? []) {
    labels[element.dataset.key] = element.textContent;
  }
  const words = { ...sentences, ...labels };
  const language = document.documentElement.lang;
  const say = (key, values = {}) => fill(words[key] ?? key, values);
  return {
    ...block("oncereel-page"),
    language,
    say,
    ago(moment, now) {
      const { key, n } = ago(moment, now);
      return key === "date" ? day(moment, language) : say(key, { n });
    },
    lasting(seconds) {
      const { key, n } = lasting(seconds);
      return say(key, { n });
    },
    exact: (moment) => exact(moment, language),
    clock: (moment) => clock(moment, language),
  };
}
