/** Questions before something irreversible or paid. */

/**
 * Ask, and give focus back to the opener, or to the page when that is gone.
 *
 * @returns whether the answer was yes; Escape means no
 */
export function ask(id, text, { yes = null } = {}) {
  const dialog = document.getElementById(id);
  if (dialog.open) return Promise.resolve(false);
  dialog.querySelector("[data-text]").textContent = text;
  if (yes) dialog.querySelector("[value=yes]").textContent = yes;
  const opener = document.activeElement;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        (opener?.isConnected ? opener : document.getElementById("content")).focus({ preventScroll: true });
        resolve(dialog.returnValue === "yes");
      },
      { once: true },
    );
  });
}
