/** The API over fetch. No call is repeated here: what to do after a lost answer is decided by the rules. */

import { parseRetryAfter } from "../rules/decide.js";

const POST_LIMIT_MILLISECONDS = 30_000; // the server answers a submit at once; the rest is a lost connection
const READ_LIMIT_MILLISECONDS = 15_000;
/** Sent on the document when an answer names another version of the pages than the one this page is of. */
export const NEW_VERSION_EVENT = "oncereel-new-version";
const NO_ANSWER = { status: 0, contentType: null, body: null, retryAfter: null };

/** The CSRF token: from the form, as the cookie may be out of scripts' reach. */
function csrfToken() {
  const field = document.querySelector("input[name=csrfmiddlewaretoken]");
  if (field) return field.value;
  const cookie = document.cookie.split("; ").find((part) => part.startsWith("csrftoken="));
  return cookie ? decodeURIComponent(cookie.slice("csrftoken=".length)) : "";
}

function compareVersions(served) {
  const own = document.querySelector("meta[name=oncereel-version]")?.content;
  if (served && own && served !== own) document.dispatchEvent(new Event(NEW_VERSION_EVENT));
}

async function call(method, path, { body = null, limit = READ_LIMIT_MILLISECONDS } = {}) {
  const headers = { Accept: "application/json, application/problem+json" };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  if (body !== null) headers["Content-Type"] = "application/json";
  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === null ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "manual", // a redirect to a sign-in page is no answer of the API
      signal: AbortSignal.timeout(limit),
    });
    text = await response.text();
  } catch {
    return NO_ANSWER;
  }
  if (response.type === "opaqueredirect") return NO_ANSWER;
  compareVersions(response.headers.get("X-Oncereel-Version"));
  const contentType = response.headers.get("Content-Type") ?? "";
  let value = null;
  if (/json/i.test(contentType) && text !== "") {
    try {
      value = JSON.parse(text);
    } catch {
      value = null; // cut off on the way: the classification sees no body of ours
    }
  }
  const retryAfter = parseRetryAfter(response.headers.get("Retry-After"), Date.now());
  return { status: response.status, contentType, body: value, retryAfter };
}

const one = (id) => `/api/videos/${encodeURIComponent(id)}`;

export const transport = {
  post: (body) => call("POST", "/api/videos", { body, limit: POST_LIMIT_MILLISECONDS }),
  read: (id) => call("GET", one(id)),
  readMany: (ids) => call("GET", `/api/videos?ids=${ids.map(encodeURIComponent).join(",")}`),
  abandon: (id) => call("POST", `${one(id)}/abandon`),
  cancel: (id) => call("POST", `${one(id)}/cancel`),
  remove: (id) => call("DELETE", one(id)),
  account: () => call("GET", "/api/account"),
  models: () => call("GET", "/api/models"),
};
