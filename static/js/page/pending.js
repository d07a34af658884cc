/**
 * Requests whose arrival is not certain yet, or has just been settled: shown above the list, never as a
 * video.
 */

export class Pending {
  /** @param useAgain `(body)` fills the form */
  constructor(page, useAgain) {
    this.page = page;
    this.useAgain = useAgain;
    this.box = document.getElementById("pending");
    this.template = document.getElementById("pending-template");
  }

  find(id) {
    return this.box?.querySelector(`[data-request="${CSS.escape(id)}"]`) ?? null;
  }

  say(id, text, body) {
    if (!this.box) return;
    const note = this.find(id) ?? this.add(id, body);
    const line = note.querySelector("[data-text]");
    if (line.textContent !== text) line.textContent = text;
  }

  /** The end is known: the sentence stays until it is put away. */
  end(id, text, body) {
    if (!this.box) return;
    this.say(id, text, body);
    const note = this.find(id);
    note.querySelector("[data-end]").hidden = false;
    note.querySelector("[data-again]").hidden = !body;
  }

  remove(id) {
    this.find(id)?.remove();
  }

  add(id, body) {
    const note = this.template.content.firstElementChild.cloneNode(true);
    note.dataset.request = id;
    note.querySelector(".prompt").textContent = body?.prompt ?? id;
    note.querySelector("[data-dismiss]").addEventListener("click", () => {
      note.remove();
      document.getElementById("content").focus({ preventScroll: true });
    });
    note.querySelector("[data-again]").addEventListener("click", () => {
      note.remove();
      this.useAgain(body);
    });
    this.box.prepend(note);
    return note;
  }
}
