/** Client task ids: made here, before anything is sent, so that a lost answer still has a name to ask for. */

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * A fresh client task id, a lower-case UUID.
 *
 * `randomUUID` exists only in secure contexts; over plain HTTP the same 122 random bits come from
 * `getRandomValues`.
 *
 * @param source the platform's `crypto`
 * @throws Error when there is no cryptographic randomness: a guessable id could meet another request's
 */
export function newClientId(source = globalThis.crypto) {
  if (typeof source?.randomUUID === "function") return source.randomUUID().toLowerCase();
  if (typeof source?.getRandomValues !== "function") throw new Error("no cryptographic randomness");
  const bytes = source.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40; // version 4
  bytes[8] = (bytes[8] & 0x3f) | 0x80; // variant of RFC 9562
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Whether a text is an id this page would have made. */
export function isClientId(text) {
  return typeof text === "string" && UUID.test(text);
}
