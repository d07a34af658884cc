/**
 * The prompt is limited in Unicode code points, as the server counts it; a string's `length` counts UTF-16
 * units.
 */

export const PROMPT_LIMIT = 4000; // code points; the server's own limit

/** Number of code points; an unpaired surrogate counts as one, as it does on the server. */
export function countCodePoints(text) {
  let count = 0;
  for (const _point of text) count += 1;
  return count;
}
