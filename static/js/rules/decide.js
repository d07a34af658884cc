/**
 * What the browser does with what it reads: the decision table as data, and the pure functions over it.
 *
 * Nothing here touches the page, the network, a clock or chance; `now` and `random` come from the caller.
 * The rule behind every cell: only the server's own words may end a request, and only its confirmation that
 * an
 * id will never be accepted allows "not charged".
 */

export const YOUNG_FOR_MILLISECONDS = 5 * 60 * 1000; // how long a request not yet received is sent again
export const RESUBMISSION_LIMIT = 3; // POSTs of one id after the first
export const SAY_AFTER_FAILED_READS = 3; // one lost read is normal on a phone; three are worth a sentence
export const CLOCK_TOLERANCE_MILLISECONDS = 60 * 1000; // a clock set back by more makes every age meaningless
export const BACKOFF_FIRST_MILLISECONDS = 2000;
export const BACKOFF_LIMIT_MILLISECONDS = 60 * 1000;
export const RETRY_AFTER_LIMIT_MILLISECONDS = 60 * 60 * 1000; // an absurd Retry-After must not end polling

export const READINGS = [
  "running",
  "unknown",
  "completed",
  "failed",
  "not_received_young",
  "not_received_old",
  "gone",
  "signed_out",
  "failed_read",
];
export const MEMORIES = ["kept", "lost", "acknowledged"];
export const UNFINISHED_STATES = ["submitting", "unknown", "processing"];
export const FINAL_STATES = ["completed", "failed"];

/**
 * Reading × memory → what to do. `acknowledges`: from now on a 404 means "record gone", never "not received".
 * `say`: slug of the sentence shown; null = the task's own message. `final`: the stored request can be
 * dropped.
 */
const POLL = { action: "poll", acknowledges: true, final: false, say: null };
const SHOW = { action: "show", acknowledges: true, final: true, say: null };
const ABANDON = { action: "abandon", acknowledges: false, final: false, say: "confirming" };
const RECORD_GONE = { action: "record_gone", acknowledges: true, final: true, say: "record_gone" };
const SIGN_IN = { action: "sign_in", acknowledges: false, final: false, say: "signed_out" };
const BACK_OFF = { action: "back_off", acknowledges: false, final: false, say: "confirming" };

export const TABLE = {
  running: { kept: POLL, lost: POLL, acknowledged: POLL },
  unknown: { kept: POLL, lost: POLL, acknowledged: POLL },
  completed: { kept: SHOW, lost: SHOW, acknowledged: SHOW },
  failed: { kept: SHOW, lost: SHOW, acknowledged: SHOW },
  not_received_young: {
    kept: { action: "resend", acknowledges: false, final: false, say: "resending" },
    lost: { action: "wait", acknowledges: false, final: false, say: "body_lost" },
    acknowledged: RECORD_GONE,
  },
  not_received_old: { kept: ABANDON, lost: ABANDON, acknowledged: RECORD_GONE },
  gone: { kept: SHOW, lost: SHOW, acknowledged: SHOW },
  signed_out: { kept: SIGN_IN, lost: SIGN_IN, acknowledged: SIGN_IN },
  failed_read: { kept: BACK_OFF, lost: BACK_OFF, acknowledged: { ...BACK_OFF, say: null } },
};

/**
 * What each POST answer means. `only` = this was the id's only POST, `again` = an earlier one may be on its
 * way.
 */
export const POST_TABLE = {
  accepted: { only: "acknowledged", again: "acknowledged" }, // 200, 201
  refused_for_ever: { only: "refused", again: "refused" }, // 402, 410: the server remembers this answer
  refused_once: { only: "refused", again: "abandon" }, // 400, 409, 413, 415: leaves no row
  id_reused: { only: "read", again: "read" }, // 422: another request owns the id
  signed_out: { only: "sign_in", again: "sign_in" }, // 401, 403
  unclear: { only: "check", again: "check" }, // anything else: the reading table decides
};

/** Which column of the table a stored request belongs to. */
export function memoryKind(memory) {
  if (memory.acknowledged) return "acknowledged";
  return memory.body === null || memory.body === undefined ? "lost" : "kept";
}

/** Whether an id the server has not received may still be sent, by age and number of POSTs. */
export function isYoung(memory, now) {
  if (memory.abandoning) return false; // the fence has been asked for: never send behind it
  const age = now - memory.created_at;
  if (!Number.isFinite(age) || age < -CLOCK_TOLERANCE_MILLISECONDS) return false;
  const resubmissions = Math.max(0, memory.tries - 1);
  return age < YOUNG_FOR_MILLISECONDS && resubmissions < RESUBMISSION_LIMIT;
}

/**
 * Decide after a read.
 *
 * @param reading result of `classify` or `classifyEntry`
 * @param memory the stored request `{created_at, tries, acknowledged, body, abandoning?, failures?}`
 * @param now milliseconds since the epoch
 * @returns `{action, acknowledges, final, say, n?}`; `n` is the number of the coming resubmission
 */
export function decide(reading, memory, now) {
  const kind = memoryKind(memory);
  let row = reading.kind;
  if (row === "not_received") row = isYoung(memory, now) ? "not_received_young" : "not_received_old";
  const cell = TABLE[row] ? TABLE[row][kind] : TABLE.failed_read[kind];
  const decision = { ...cell };
  if (decision.action === "resend") decision.n = Math.max(1, memory.tries);
  if (decision.action === "back_off" && (memory.failures ?? 0) >= SAY_AFTER_FAILED_READS)
    decision.say = "read_failed";
  return decision;
}

/**
 * Which row of POST_TABLE an answer is. Only our own JSON may refuse or accept; a proxy's page is unclear.
 */
export function classifyPost(httpStatus, contentType, body, id) {
  if (httpStatus === 401 || httpStatus === 403) return "signed_out";
  const isProblem = isOurProblem(httpStatus, contentType, body);
  if (httpStatus === 200 || httpStatus === 201) {
    return isJson(contentType) && isTask(body) && body.id === id ? "accepted" : "unclear";
  }
  if (!isProblem) return "unclear";
  if (httpStatus === 402 || httpStatus === 410) return "refused_for_ever";
  if ([400, 409, 413, 415].includes(httpStatus)) return "refused_once";
  if (httpStatus === 422) return body.code === "id_reused" ? "id_reused" : "unclear";
  return "unclear";
}

/**
 * Decide after a POST.
 *
 * @param answer `{status, contentType, body}`; status 0 when no answer came
 * @param memory the stored request, its `tries` already counting this POST
 * @returns `{action, row, say, keepsDraft}`
 */
export function afterPost(answer, memory) {
  const row = classifyPost(answer.status, answer.contentType, answer.body, memory.id);
  const action = POST_TABLE[row][memory.tries <= 1 ? "only" : "again"];
  const say = { check: "confirming", abandon: "confirming", sign_in: "signed_out" }[action] ?? null;
  return { action, row, say, keepsDraft: action !== "acknowledged" };
}

/** Decide after POST …/abandon: only 200 may say "not charged"; 409 means that the request did arrive. */
export function afterAbandon(answer, id) {
  const { status, contentType, body } = answer;
  if (status === 401 || status === 403) return { action: "sign_in", say: "signed_out", final: false };
  if (status === 200 && isJson(contentType) && isObject(body) && (body.id === undefined || body.id === id)) {
    return { action: "abandoned", say: "abandoned", final: true };
  }
  if (isOurProblem(status, contentType, body)) {
    if (status === 409) return { action: "arrived", say: null, final: false };
    if (status === 410) return { action: "show", say: null, final: true };
  }
  return { action: "retry", say: "abandon_unconfirmed", final: false };
}

/**
 * Turn the answer of GET /api/videos/{id} into a reading.
 *
 * A 404 counts only when it is our own problem document with `not_received`: a proxy's 404, a captive
 * portal's page
 * or a wrong address says nothing about the request.
 *
 * @returns `{kind, task?, problem?}` where kind is a row of TABLE, or `not_received` before its age is known
 */
export function classify(httpStatus, contentType, body) {
  if (httpStatus === 401 || httpStatus === 403) return { kind: "signed_out" };
  if (httpStatus === 200 && isJson(contentType))
    return isTask(body) ? classifyEntry(body) : { kind: "failed_read" };
  if (isOurProblem(httpStatus, contentType, body)) {
    if (httpStatus === 404 && body.code === "not_received") return { kind: "not_received", problem: body };
    if (httpStatus === 410 && isGoneCode(body.code)) return { kind: "gone", problem: body };
  }
  return { kind: "failed_read" };
}

/** Turn one entry of GET /api/videos?ids=… into a reading: a task, or `{id, code, charge, message}`. */
export function classifyEntry(entry) {
  if (!isObject(entry) || typeof entry.id !== "string") return { kind: "failed_read" };
  if (typeof entry.state === "string") {
    if (entry.state === "unknown") return { kind: "unknown", task: entry };
    if (UNFINISHED_STATES.includes(entry.state)) return { kind: "running", task: entry };
    if (FINAL_STATES.includes(entry.state)) return { kind: entry.state, task: entry };
    return { kind: "failed_read" };
  }
  if (entry.code === "not_received") return { kind: "not_received", problem: entry };
  if (isGoneCode(entry.code)) return { kind: "gone", problem: entry };
  return { kind: "failed_read" };
}

/**
 * How long to wait before the next try, in milliseconds.
 *
 * Doubles from 2 s to 60 s with half of it jitter, so that many tabs do not return at once; a Retry-After
 * (seconds)
 * is a lower bound.
 */
export function backoff(tries, retryAfter, random) {
  const exponent = Math.min(Math.max(0, tries - 1), 16);
  const ceiling = Math.min(BACKOFF_LIMIT_MILLISECONDS, BACKOFF_FIRST_MILLISECONDS * 2 ** exponent);
  const jittered = Math.round(ceiling / 2 + (ceiling / 2) * random());
  if (!Number.isFinite(retryAfter) || retryAfter <= 0) return jittered;
  const asked = Math.min(RETRY_AFTER_LIMIT_MILLISECONDS, retryAfter * 1000);
  return Math.max(jittered, Math.round(asked * (1 + 0.2 * random())));
}

/** Retry-After in seconds from its header (seconds or an HTTP date), or null. */
export function parseRetryAfter(header, now) {
  if (typeof header !== "string" || header.trim() === "") return null;
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, Math.ceil((date - now) / 1000));
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isJson(contentType) {
  return typeof contentType === "string" && /^application\/json\s*(;|$)/i.test(contentType.trim());
}

function isTask(body) {
  return isObject(body) && [...UNFINISHED_STATES, ...FINAL_STATES].includes(body.state);
}

function isGoneCode(code) {
  return code === "deleted" || code === "abandoned";
}

function isOurProblem(httpStatus, contentType, body) {
  return (
    httpStatus >= 400 &&
    typeof contentType === "string" &&
    /^application\/problem\+json\s*(;|$)/i.test(contentType.trim()) &&
    isObject(body) &&
    typeof body.code === "string"
  );
}
