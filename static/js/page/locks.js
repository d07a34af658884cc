/**
 * One tab at a time, where the browser has Web Locks. Without them every tab works, which costs requests,
 * not money.
 */

const locks = globalThis.navigator?.locks;

/** Run `work` unless another tab is running it; then resolves to "elsewhere". */
export function exclusive(name, work) {
  if (!locks) return work();
  return locks.request(name, { ifAvailable: true }, (lock) => (lock ? work() : "elsewhere"));
}

/** Call `lead` once this tab is the leader; it stays so until it is closed. */
export function whenLeader(name, lead) {
  if (!locks) {
    lead();
    return;
  }
  locks
    .request(name, () => {
      lead();
      return new Promise(() => {}); // held until the tab goes away
    })
    .catch(() => lead()); // forbidden here (a sandboxed frame): work as without locks
}
