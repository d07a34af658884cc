/** The form: what the model offers, the price, the draft. It asks for a submit; it does not send. */

import { PROMPT_LIMIT, countCodePoints } from "../rules/codepoints.js";
import { newClientId } from "../rules/ids.js";
import { formatAmount, formatMoney, lowestPrice, priceOf, toAmount, toMicros } from "../rules/money.js";
import { localStore } from "./stores.js";

const DRAFT_MILLISECONDS = 300;
const OPTIONS = { seconds: "seconds", resolution: "resolutions", aspect_ratio: "aspect_ratios" };

export class Composer {
  /** @param submit `(body, priceMicros)` → promise; called once per wish, never while one is being sent */
  constructor(page, submit) {
    this.page = page;
    this.submit = submit;
    this.store = localStore();
    this.draftKey = `oncereel.draft.${page.owner}`;
    this.isBusy = false;
    this.section = document.getElementById("composer");
    this.form = document.getElementById("composer-form");
    this.fields = this.form.elements;
    this.button = document.getElementById("generate");
    this.alert = document.getElementById("composer-alert");
    this.state = document.getElementById("submit-state");
    this.balance = page.balance?.balance ? toMicros(page.balance.balance) : null;
    this.listen();
    this.labelModels();
    this.update();
    this.restoreDraft();
  }

  listen() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (event.submitter && event.submitter !== this.button) return; // Enter in a text field spends nothing
      void this.send();
    });
    this.form.addEventListener("input", () => {
      this.update();
      clearTimeout(this.draftTimer);
      this.draftTimer = setTimeout(() => this.saveDraft(), DRAFT_MILLISECONDS);
    });
    this.fields.model.addEventListener("change", () => {
      this.renderOptions(this.chosen());
      this.update();
    });
    this.fields.prompt.addEventListener("keydown", (event) => {
      if (event.isComposing || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.form.requestSubmit(this.button);
    });
    this.section
      .querySelector(".close")
      .addEventListener("click", () => this.section.classList.remove("is-open"));
  }

  model() {
    return (this.page.models ?? []).find((model) => model.model === this.fields.model.value) ?? null;
  }

  /** The settings as they would be sent, without id and price. */
  chosen() {
    const values = new FormData(this.form);
    const model = this.model();
    const body = { model: values.get("model"), prompt: String(values.get("prompt") ?? "").trim() };
    if (values.get("seconds")) body.seconds = Number(values.get("seconds"));
    if (values.get("resolution")) body.resolution = values.get("resolution");
    if (values.get("aspect_ratio")) body.aspect_ratio = values.get("aspect_ratio");
    if (model?.audio && values.get("audio")) body.audio = values.get("audio") === "true";
    const seed = String(values.get("seed") ?? "").trim();
    if (seed !== "")
      body.seed = /^\d+$/.test(seed) && Number.isSafeInteger(Number(seed)) ? Number(seed) : seed;
    const image = String(values.get("image_url") ?? "").trim();
    if (model?.input === "image" && image) body.image_url = image;
    return body;
  }

  price(body = this.chosen()) {
    const model = this.model();
    return model?.available ? priceOf(model, { ...body, audio: body.audio ?? false }) : null;
  }

  /** What is wrong with the form: `{field, text}` or null. The server judges again. */
  problem(body) {
    const length = countCodePoints(body.prompt);
    const limit = this.model()?.max_prompt ?? PROMPT_LIMIT;
    if (length === 0) return { field: "prompt", text: this.page.say("prompt_missing") };
    if (length > limit)
      return { field: "prompt", text: this.page.say("prompt_too_long", { n: length - limit }) };
    if (typeof body.seed === "string") return { field: "seed", text: this.page.say("seed_invalid") };
    if (this.model()?.input === "image" && !body.image_url) {
      return { field: "image_url", text: this.page.say("image_missing") };
    }
    if (this.price(body) === null) return { field: "model", text: this.page.say("not_sold") };
    return null;
  }

  async send() {
    if (this.isBusy) return;
    const body = this.chosen();
    const problem = this.problem(body);
    this.refuse(problem?.text ?? "", problem?.field ?? null);
    if (problem) return;
    const price = this.price(body);
    this.isBusy = true; // from here on a second press does nothing
    try {
      await this.submit({ id: newClientId(), ...body, max_price: toAmount(price) }, price);
    } finally {
      this.isBusy = false;
      this.button.removeAttribute("aria-disabled");
      this.state.textContent = "";
      this.update();
    }
  }

  /** While the request leaves: the label says so, and the focus stays. */
  showSending(text) {
    if (!this.isBusy) return;
    this.button.setAttribute("aria-disabled", "true");
    this.button.textContent = this.page.say("sending_button");
    this.state.textContent = text;
  }

  /** Show why nothing was sent or taken; an empty text clears it. */
  refuse(text, field = null) {
    this.alert.replaceChildren();
    for (const name of ["prompt", "seed", "image_url"]) this.fields[name]?.removeAttribute("aria-invalid");
    if (!text) return;
    const note = document.createElement("p");
    note.className = "note tone-failure";
    note.textContent = text;
    this.alert.append(note);
    note.scrollIntoView({ block: "nearest" });
    const element = field ? this.fields[field] : null;
    if (element instanceof HTMLElement) {
      element.setAttribute("aria-invalid", "true");
      element.focus();
    }
  }

  /** The request has arrived: the next one starts empty, with the same settings. */
  clearPrompt() {
    this.fields.prompt.value = "";
    this.fields.seed.value = "";
    clearTimeout(this.draftTimer);
    this.store.remove(this.draftKey);
    document.getElementById("prompt-state").replaceChildren();
    this.section.classList.remove("is-open");
    if (location.hash === "#composer" && isSheet()) location.hash = "#list";
    this.update();
  }

  /** Fill the form from a task or a stored request; nothing is sent. */
  fill(values) {
    if (
      this.model()?.model !== values.model &&
      (this.page.models ?? []).some(({ model }) => model === values.model)
    ) {
      this.fields.model.value = values.model;
    }
    this.renderOptions(values);
    this.fields.prompt.value = values.prompt ?? "";
    this.fields.seed.value = values.seed ?? "";
    this.fields.image_url.value = values.image_url ?? "";
    this.refuse("");
    this.update();
    this.open();
  }

  open() {
    if (isSheet()) location.hash = "#composer"; // beside the list it is in sight already
    this.fields.prompt.focus();
  }

  setBalance(balance) {
    this.balance = toMicros(balance);
    this.update();
  }

  setModels(models) {
    this.page.models = models;
    this.labelModels();
    this.renderOptions(this.chosen());
    this.update();
  }

  labelModels() {
    for (const option of this.fields.model.options) {
      const model = (this.page.models ?? []).find((candidate) => candidate.model === option.value);
      const least = model ? lowestPrice(model) : null;
      option.dataset.name ??= option.textContent;
      if (least === null || !model.available) continue;
      const from = this.page.say("price_from", { price: formatMoney(least, this.page.currency) });
      option.textContent = `${option.dataset.name} · ${from}`;
    }
  }

  renderOptions(wanted) {
    const model = this.model();
    if (!model) return;
    const fallback = model.default ?? {};
    for (const [name, list] of Object.entries(OPTIONS)) {
      const values = model[list] ?? [];
      const chosen = values.includes(wanted[name]) ? wanted[name] : (fallback[name] ?? values[0]);
      const label = (value) => (name === "seconds" ? `${value} s` : String(value));
      renderRadios(
        name,
        values.map((value) => [String(value), label(value)]),
        String(chosen),
      );
    }
    const audio = wanted.audio ?? fallback.audio ?? false;
    const choices = model.audio
      ? [
          ["true", this.page.say("on")],
          ["false", this.page.say("off")],
        ]
      : [];
    renderRadios("audio", choices, String(audio));
  }

  update() {
    const model = this.model();
    const body = this.chosen();
    const price = this.price(body);
    this.fields.max_price.value = price === null ? "" : toAmount(price);
    document.getElementById("image-field").hidden = model?.input !== "image";
    this.describeModel(model);
    this.countPrompt(model);
    if (!this.isBusy) {
      this.button.textContent =
        price === null
          ? this.page.say("generate")
          : this.page.say("generate_for", { price: formatMoney(price, this.page.currency) });
      this.button.disabled = price === null; // the reason stands beside it
    }
    this.showCost(price);
  }

  describeModel(model) {
    if (!model) return;
    const parts = [];
    if (model.usual_seconds) {
      const { low, high } = model.usual_seconds;
      parts.push(
        this.page.say("usually", { low: this.page.lasting(low), high: this.page.lasting(high) }),
      );
    }
    if (model.charges_on_refusal) parts.push(this.page.say("charges_on_refusal"));
    document.getElementById("model-help").textContent = parts.join(" · ");
  }

  countPrompt(model) {
    const counter = document.getElementById("prompt-count");
    const limit = model?.max_prompt ?? PROMPT_LIMIT;
    const grouped = (n) => formatAmount(BigInt(n) * 1_000_000n).slice(0, -3);
    counter.textContent = `${grouped(countCodePoints(this.fields.prompt.value.trim()))} / ${grouped(limit)}`;
  }

  showCost(price) {
    const line = document.getElementById("cost-line");
    if (price === null) {
      line.textContent = this.page.say("not_sold");
      return;
    }
    const amount = document.createElement("b");
    amount.textContent = formatMoney(price, this.page.currency);
    line.replaceChildren(amount);
    if (this.balance === null) return;
    const rest = document.createElement("span");
    rest.className = "meta";
    if (this.balance >= price) {
      rest.textContent = this.page.say("balance_after", { amount: formatAmount(this.balance - price) });
    } else {
      const missing = formatMoney(price - this.balance, this.page.currency);
      const link = document.createElement("a");
      link.href = "/billing/";
      link.textContent = this.page.say("add_money");
      rest.append(`${this.page.say("insufficient_before", { missing })} `, link);
    }
    line.append(rest);
  }

  saveDraft() {
    const body = this.chosen();
    if (body.prompt === "") this.store.remove(this.draftKey);
    else this.store.set(this.draftKey, JSON.stringify(body));
  }

  restoreDraft() {
    if (this.fields.prompt.value !== "") return;
    let draft = null;
    try {
      draft = JSON.parse(this.store.get(this.draftKey) ?? "null");
    } catch {
      this.store.remove(this.draftKey); // damaged by something else; a draft is a convenience
    }
    if (typeof draft?.prompt !== "string" || draft.prompt === "") return;
    if ([...this.fields.model.options].some((option) => option.value === draft.model && !option.disabled)) {
      this.fields.model.value = draft.model;
    }
    this.renderOptions(draft);
    this.fields.prompt.value = draft.prompt;
    this.fields.seed.value = draft.seed ?? "";
    this.offerDiscard();
    this.update();
  }

  offerDiscard() {
    const line = document.getElementById("prompt-state");
    const discard = document.createElement("button");
    discard.type = "button";
    discard.className = "text-link";
    discard.textContent = this.page.say("discard");
    discard.addEventListener("click", () => {
      this.clearPrompt();
      line.replaceChildren();
      this.fields.prompt.focus();
    });
    line.replaceChildren(`${this.page.say("draft_restored")} · `, discard);
  }
}

/** Whether the form is a sheet over the list, as on phones; the width is that of videos.css. */
function isSheet() {
  return window.matchMedia("(width < 1024px)").matches;
}

/** Replace the radios of one setting; a model without it hides the whole group. */
function renderRadios(name, choices, chosen) {
  const group = document.querySelector(`[data-option="${name}"]`);
  group.hidden = choices.length === 0;
  group.querySelector("div").replaceChildren(
    ...choices.map(([value, text]) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      const word = document.createElement("span");
      Object.assign(input, { type: "radio", name, value, checked: value === chosen });
      word.textContent = text;
      label.append(input, word);
      return label;
    }),
  );
}
