/** Times for people. Words come from the page's labels, so that both languages live in the catalogue. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Which label says how long ago a moment was, and its number.
 *
 * @param moment, now milliseconds since the epoch; a moment in the future (a clock that is off) reads as now
 * @returns `{key, n}`; key `date` when it is a week or more ago
 */
export function ago(moment, now) {
  const seconds = Math.max(0, Math.floor((now - moment) / 1000));
  if (seconds < MINUTE) return { key: "just_now", n: 0 };
  if (seconds < HOUR) return { key: "minutes_ago", n: Math.floor(seconds / MINUTE) };
  if (seconds < DAY) return { key: "hours_ago", n: Math.floor(seconds / HOUR) };
  if (seconds < 7 * DAY)
    return { key: seconds < 2 * DAY ? "day_ago" : "days_ago", n: Math.floor(seconds / DAY) };
  return { key: "date", n: 0 };
}

/** Which label says how long something has lasted: `{key, n}`. */
export function lasting(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  // As the server says it: a unit is used from two of it on, and one whole minute is said as such.
  if (whole < 2 * MINUTE && whole !== MINUTE) return { key: "seconds", n: whole };
  if (whole < 2 * HOUR) return { key: "minutes", n: Math.floor(whole / MINUTE) };
  return { key: "hours", n: Math.floor(whole / HOUR) };
}

/** Exact local date and time in the page's language; `timeStyle` "medium" has seconds, "short" has not. */
export function exact(moment, language, timeStyle = "medium") {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle }).format(moment);
}

/** Local clock time, hours and minutes. */
export function clock(moment, language) {
  return new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit" }).format(moment);
}

/** Local date. */
export function day(moment, language) {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium" }).format(moment);
}
