/** What the buttons of a task do: copy, cancel, delete. The server's answer is shown as it is. */

import { ask } from "./dialogs.js";
import { heldMoney } from "./cards.js";
import { formatMoney, toMicros } from "../rules/money.js";

const COPIED_MILLISECONDS = 6000; // long enough to mark and copy an id by hand

export class Actions {
  /**
   * @param apply `(task)` shows a task; `removed(id)` takes it off the page; `hint(id, text)` says something
   * beside it
   */
  constructor({ page, transport, apply, removed, hint }) {
    Object.assign(this, { page, transport, apply, removed, hint });
  }

  async copy(id) {
    let text = this.page.say("copied");
    try {
      await navigator.clipboard.writeText(id);
    } catch {
      text = id; // no clipboard over plain HTTP: the id is shown, to be marked and copied
    }
    this.hint(id, text);
    setTimeout(() => this.hint(id, ""), COPIED_MILLISECONDS);
  }

  async cancel(id) {
    const task = await this.readTask(id);
    if (!task) return;
    if (!task.cancel?.possible) {
      this.apply(task);
      return;
    }
    const isUnsent = task.state === "submitting" && task.submission_state === "submitting";
    const { refund } = task.cancel;
    const amount = isUnsent && refund ? formatMoney(toMicros(refund), task.charge.currency) : heldMoney(task);
    if (
      !(await ask(
        "cancel-dialog",
        this.page.say(isUnsent ? "cancel_not_sent" : "cancel_running", { amount }),
      ))
    )
      return;
    const answer = await this.transport.cancel(id);
    if ((answer.status === 200 || answer.status === 202) && answer.body?.state) this.apply(answer.body);
    else this.hint(id, this.explain(answer));
  }

  async remove(id) {
    if (!(await ask("delete-dialog", this.page.say("delete_text")))) return;
    const answer = await this.transport.remove(id);
    if (answer.status === 204 || (answer.status === 410 && answer.body?.code)) this.removed(id);
    else this.hint(id, this.explain(answer));
  }

  /** The task as it is now, or null with the reason beside it. */
  async readTask(id) {
    const answer = await this.transport.read(id);
    if (answer.status === 200 && answer.body?.id) return answer.body;
    this.hint(id, this.explain(answer));
    return null;
  }

  explain(answer) {
    return answer.body?.detail || answer.body?.message?.text || this.page.say("action_unclear");
  }
}
