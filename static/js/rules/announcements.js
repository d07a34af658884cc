/** What a screen reader is told, and the title: only changes, merged, and never percentages. */

import { toMicros } from "./money.js";

/**
 * Merge the tasks that ended within one moment into counts.
 *
 * @param tasks finished tasks of the API
 * @returns `{ready, failed, returnedMicros}`
 */
export function summarise(tasks) {
  let ready = 0;
  let failed = 0;
  let returnedMicros = 0n;
  for (const task of tasks) {
    if (task.state === "completed") ready += 1;
    else if (task.state === "failed") {
      failed += 1;
      if (task.charge?.refunded) returnedMicros += toMicros(task.charge.refunded);
    }
  }
  return { ready, failed, returnedMicros };
}

/** Which label announces a summary, or null when there is nothing to say. */
export function announcementKey({ ready, failed, returnedMicros }) {
  if (ready === 0 && failed === 0) return null;
  if (failed === 0) return ready === 1 ? "one_ready" : "many_ready";
  const suffix = returnedMicros > 0n ? "_returned" : "";
  return ready === 0 ? `only_failed${suffix}` : `ready_and_failed${suffix}`;
}

/** Whether a change of a task is worth announcing: its end, or that it needs attention. */
export function isTransition(before, after) {
  return Boolean(before) && before.state !== after.state && ["completed", "failed"].includes(after.state);
}
