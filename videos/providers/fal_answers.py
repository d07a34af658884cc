"""What fal's queue answers, read into our closed sets of answers. Pure; nothing here raises.

Sources: official `fal-client` 1.0.3; fal's pages on the queue, on errors and on the platform API.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from core.http import HttpResponse
from videos.providers.base import (
    Accepted,
    AccountTrouble,
    AlreadyCompleted,
    CancelAnswer,
    Cancelled,
    CancelNotFound,
    CancelRequested,
    CancelUnclear,
    LookupHit,
    LookupPage,
    NotFound,
    NotReady,
    NoUrl,
    ProviderFailed,
    ReadTrouble,
    Ready,
    Rejected,
    ResultReading,
    Running,
    StatusReading,
    SubmitAnswer,
    Succeeded,
    Throttled,
    Unclear,
    UnseenWord,
    Waiting,
    WrongAddress,
)
from videos.providers.fal_errors import (
    CLIENT_CANCELLED,
    FalError,
    error_of,
    read_error,
    retry_after_seconds,
    stated_usage,
)
from videos.providers.text import NOT_JSON, clean_text, parse_json
from videos.providers.words import MAX_WORD, JobWord, known_word

HANDLE_NAMES = ("status_url", "response_url", "cancel_url")
REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")  # as long as an id can be kept
MAX_URL = 2048
MAX_PLACE = 10**9
# Words of the result address while a job still runs; the text is the official client's only sign of it.
STILL_RUNNING = re.compile(r"in progress|in queue|not (yet )?(completed?|ready|finished)", re.IGNORECASE)


def read_submit(response: HttpResponse) -> SubmitAnswer:
    """The answer to a submission. Only an id means taken; only the provider's own words mean refused."""
    status = response.status
    if 200 <= status < 300:
        return _read_creation(response)
    if status < 400:
        return WrongAddress(reason=f"status_{status}")
    if status >= 500 or status in (408, 409, 425):
        return Unclear(reason=f"status_{status}")
    error = read_error(response)
    if status == 429:
        if not error.is_own:
            return Unclear(reason="status_429_not_own")
        return Throttled(retry_after_seconds=retry_after_seconds(response.headers))
    if not error.is_own:
        return WrongAddress(reason=f"status_{status}_not_own")
    if status in (401, 402, 403):
        return _account_trouble(status, error)
    if status in (400, 413, 422):
        return Rejected(code=error.refusal_code, detail=error.detail, field=error.field)
    return WrongAddress(reason=f"status_{status}")


def read_status(response: HttpResponse) -> StatusReading:
    """The state of a job: 202 until it ends, 200 then. fal has no failed state: COMPLETED with an error is
    one.

    A refusal by the content rules is read as `Succeeded`, because its result says what was refused and what
    was billed, and the status does not.
    """
    if response.status not in (200, 202):
        return _read_trouble(response)
    body = parse_json(response.body)
    if not isinstance(body, dict):
        return ReadTrouble(reason="truncated" if response.truncated else "not_json")
    spelling = body.get("status")
    word = known_word(spelling)
    if word is None:
        if not isinstance(spelling, str) or not spelling.strip():
            return ReadTrouble(reason="no_status")
        return UnseenWord(word=clean_text(spelling, MAX_WORD))
    if word is JobWord.WAITING:
        return Waiting(queue_position=_place(body.get("queue_position")))
    if word is JobWord.RUNNING:
        return Running(progress=None)
    if word is JobWord.CANCELLED:
        return Cancelled()
    return _read_end(word, body, response.headers)


def read_result(response: HttpResponse) -> ResultReading:
    """The model's output, or the model's own refusal. 5xx are failed reads: a failure is told by the
    status.
    """
    body = parse_json(response.body)
    if response.status == 202:
        return NotReady()
    if response.status == 200:
        if body is NOT_JSON:
            return ReadTrouble(reason="truncated" if response.truncated else "not_json")
        url = _video_url(body)
        return Ready(url=url, usage=stated_usage(response.headers)) if url else NoUrl()
    if response.status not in (400, 413, 422):
        return _read_trouble(response)
    error = error_of(body, response.headers)
    if error.kind == CLIENT_CANCELLED:
        return Cancelled()
    if not error.is_own:
        return ReadTrouble(reason=f"status_{response.status}_not_own")
    if response.status == 400 and not error.is_listed and not error.kind:
        return NotReady() if STILL_RUNNING.search(error.detail) else ReadTrouble(reason="status_400")
    return _refused_output(error, response)


def read_cancel(response: HttpResponse) -> CancelAnswer:
    """202 CANCELLATION_REQUESTED, 400 ALREADY_COMPLETED, 404 NOT_FOUND; anything else is not clear."""
    body = parse_json(response.body)
    word = body.get("status") if isinstance(body, dict) else None
    if response.status in (200, 202):
        return CancelRequested() if isinstance(body, dict) else CancelUnclear(reason="not_json")
    if response.status == 400 and word == "ALREADY_COMPLETED":
        return AlreadyCompleted()
    if response.status == 404 and isinstance(body, dict):
        return CancelNotFound()
    return CancelUnclear(reason=f"status_{response.status}")


def read_lookup(response: HttpResponse) -> LookupPage:
    """One page of `requests/by-endpoint`. Entries without an id are left out."""
    if response.status != 200:
        trouble = _read_trouble(response)
        return LookupPage(
            trouble=ReadTrouble(reason="status_404") if isinstance(trouble, NotFound) else trouble
        )
    body = parse_json(response.body)
    entries = _list_of_entries(body)
    if entries is None:
        return LookupPage(trouble=ReadTrouble(reason="truncated" if response.truncated else "no_list"))
    cursor = body.get("next_cursor") if isinstance(body, dict) else None
    found = [hit for entry in entries if isinstance(entry, dict) and (hit := _read_hit(entry))]
    return LookupPage(found=found, next_cursor=cursor if isinstance(cursor, str) and cursor else None)


def upstream_id_of(body: Mapping[str, Any]) -> str | None:
    """The usable `request_id` of an object, or None."""
    value = body.get("request_id")
    return value if isinstance(value, str) and REQUEST_ID.fullmatch(value) else None


def _read_creation(response: HttpResponse) -> SubmitAnswer:
    body = parse_json(response.body)
    if not isinstance(body, dict):
        return Unclear(reason="truncated" if response.truncated else "not_json")
    inner = body.get("data")
    # One level of `data` round the answer is accepted, as gateways add it (C20).
    for candidate in (body, inner if isinstance(inner, dict) else {}):
        upstream_id = upstream_id_of(candidate)
        if upstream_id:
            given = {name: candidate.get(name) for name in HANDLE_NAMES}
            return Accepted(
                upstream_id=upstream_id,
                handles={
                    name: url for name, url in given.items() if isinstance(url, str) and len(url) <= MAX_URL
                },
                queue_position=_place(candidate.get("queue_position")),
            )
    return Unclear(reason="no_id")


def _read_end(word: JobWord, body: Mapping[str, Any], headers: Mapping[str, str]) -> StatusReading:
    error = error_of(body, headers)
    if error.kind == CLIENT_CANCELLED:
        return Cancelled()
    has_error = bool(body.get("error")) or bool(body.get("error_type"))
    if word is JobWord.SUCCEEDED and (not has_error or error.is_content_policy):
        return Succeeded()
    reason = JobWord.FAILED if word is JobWord.SUCCEEDED else word
    return ProviderFailed(
        code="provider_failed",
        detail=error.detail,
        reason=error.kind or reason.value,
        retryable=error.retryable,
        charged=stated_usage(headers),
    )


def _refused_output(error: FalError, response: HttpResponse) -> ProviderFailed:
    """A 4xx as the result. A refusal that was billed had run: then it is the output that was withheld."""
    charged = stated_usage(response.headers)
    is_input = error.is_listed and error.field is not None
    if error.is_content_policy:
        is_billed = charged is not None and charged.is_above_zero
        code = error.refusal_code if is_input and not is_billed else "output_withheld"
    else:
        code = "input_invalid" if is_input else "provider_failed"
    return ProviderFailed(
        code=code,
        detail=error.detail,
        reason=error.kind or "failed",
        retryable=error.retryable and code == "provider_failed",
        field=error.field,
        charged=charged,
    )


def _read_trouble(response: HttpResponse) -> ReadTrouble | NotFound | AccountTrouble:
    """Any answer that is no reading: a failed read, an unknown id, or trouble of our account."""
    if response.status in (401, 402, 403):
        return _account_trouble(response.status, read_error(response))
    if response.status in (404, 410) and read_error(response).is_own:
        return NotFound()
    return ReadTrouble(
        reason=f"status_{response.status}", retry_after_seconds=retry_after_seconds(response.headers)
    )


def _account_trouble(status: int, error: FalError) -> AccountTrouble:
    text = error.detail.lower()
    if status == 402 or "balance" in text or "top_up" in text:
        return AccountTrouble(reason="out_of_funds")
    if "locked" in text:
        return AccountTrouble(reason="locked")
    return AccountTrouble(reason="key_refused" if status == 401 else "forbidden")


def _video_url(body: Any) -> str | None:
    """The address in `{video: {url}}`, also where the video is a text, a list, or `videos`; None if
    unusable.
    """
    if not isinstance(body, dict):
        return None
    for candidate in (body.get("video"), body.get("videos")):
        first = candidate[0] if isinstance(candidate, list) and candidate else candidate
        url = first.get("url") if isinstance(first, dict) else first
        if isinstance(url, str) and url.strip() and len(url) <= MAX_URL:
            return url.strip()
    return None


def _place(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_PLACE else None


def _list_of_entries(body: Any) -> list[Any] | None:
    """The list in a page. Its name is not documented in what we have, so the usual ones are accepted."""
    if isinstance(body, list):
        return body
    if isinstance(body, dict):
        for name in ("items", "requests", "data", "results"):
            entries = body.get(name)
            if isinstance(entries, list):
                return entries
    return None


def _read_hit(entry: Mapping[str, Any]) -> LookupHit | None:
    upstream_id = upstream_id_of(entry)
    if upstream_id is None:
        return None
    given = entry.get("json_input")
    if isinstance(given, str):
        given = parse_json(given.encode("utf-8", "replace"))
    code = entry.get("status_code")
    return LookupHit(
        upstream_id=upstream_id,
        input=given if isinstance(given, dict) else None,
        state="ended" if type(code) is not int else "succeeded" if code < 300 else "failed",
        sent_at=_read_time(entry.get("sent_at")),
    )


def _read_time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
