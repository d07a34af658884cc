"""What goes wrong with one answer, and the queue of scripted faults. Pure: nothing here talks or waits."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from simulator.directives import Directives, Setting, integer, normalise, number, surface_settings, text

SURFACES = ("submit", "status", "result", "file", "webhook", "cancel", "lookup")
HANG_SECONDS = 120.0  # longer than any client waits
DEFAULT_DETAILS = {
    400: "Invalid request",
    401: "Cannot access application. Authentication is required.",
    403: "User is locked. Reason: Exhausted balance",
    404: "Application not found",
    408: "Request timed out",
    409: "Conflict",
    413: "Request body too large",
    422: "Unprocessable input",
    425: "Too early",
    429: "Too many requests. Please slow down.",
    500: "Internal server error",
    503: "Service unavailable",
}
ERROR_TYPES = {
    400: "bad_request",
    408: "request_timeout",
    500: "internal_error",
    503: "runner_connection_error",
}
HTML_CODES = (502, 504)  # what a proxy in front of the provider says by itself
HTML_PAGE = "<html><head><title>{0}</title></head><body><h1>{0}</h1><hr>nginx</body></html>"


class Cut(StrEnum):
    """How a connection ends without a whole answer."""

    RESET = "reset"
    CLOSE = "close"
    HALF = "half"


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer before it is sent."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerFault:
    """What happens to one answer. `takes_job` matters on submit alone; times in seconds."""

    takes_job: bool = True
    wait_before: float = 0.0
    wait: float = 0.0
    cut: Cut | None = None
    hang_seconds: float | None = None
    status: int | None = None
    body: str | None = None
    detail: str | None = None
    error_type: str | None = None
    retry_after: str | None = None
    success_code: int | None = None
    shape: str | None = None


NO_FAULT = AnswerFault()


@dataclass(slots=True)
class Rule:
    """A scripted fault: which requests it meets, how often yet, and its settings."""

    rule_id: int
    on: str
    endpoint: str | None
    prompt_contains: str | None
    remaining: int | None
    fault: Directives

    def meets(self, *, on: str, endpoint: str | None, prompt: str) -> bool:
        """Whether this rule applies to a request; an endpoint also covers the paths below it."""
        if self.on != on or self.remaining == 0:
            return False
        if self.endpoint is not None and endpoint != self.endpoint:
            below = endpoint is not None and endpoint.startswith(f"{self.endpoint}/")
            if not below:
                return False
        return self.prompt_contains is None or self.prompt_contains in prompt


class InvalidRule(ValueError):
    """A scripted fault that cannot be understood; the message says why."""


def read_rule(document: Any, *, rule_id: int) -> Rule:
    """A rule out of `{match: {on, endpoint?, prompt_contains?}, times?, fault: {...}}`.

    Raises:
        InvalidRule: another shape, an unknown `on`, or a negative `times`.
    """
    if not isinstance(document, dict) or not isinstance(document.get("fault"), dict):
        raise InvalidRule("a rule is an object with a fault object")
    match = document.get("match") or {}
    if not isinstance(match, dict) or match.get("on", "submit") not in SURFACES:
        raise InvalidRule(f"match.on is one of {', '.join(SURFACES)}")
    times = document.get("times")
    if times is not None and (not isinstance(times, int) or isinstance(times, bool) or times < 1):
        raise InvalidRule("times is a positive whole number or null")
    return Rule(
        rule_id=rule_id,
        on=match.get("on", "submit"),
        endpoint=match.get("endpoint"),
        prompt_contains=match.get("prompt_contains"),
        remaining=times,
        fault=_spelled_out(normalise(document["fault"])),
    )


def read_fault(settings: Mapping[str, Setting]) -> AnswerFault:
    """The fault that settings without a surface name ask for; the rougher one wins when several do."""
    shared = AnswerFault(
        wait_before=number(settings.get("delay_before"), 0.0),
        wait=number(settings.get("delay"), 0.0),
        body=text(settings.get("body")),
        detail=text(settings.get("detail")),
        error_type=text(settings.get("error_type")),
        retry_after=text(settings.get("retry_after")),
        success_code=integer(settings.get("code")),
        shape=text(settings.get("shape")),
    )
    if settings.get("drop_before_accept"):
        return replace(shared, takes_job=False, cut=_cut(settings["drop_before_accept"], Cut.CLOSE))
    if settings.get("hang_before_accept"):
        seconds = number(settings["hang_before_accept"], HANG_SECONDS)
        return replace(shared, takes_job=False, hang_seconds=seconds)
    refused = integer(settings.get("refuse")) or integer(settings.get("answer"))
    if refused:
        return replace(shared, takes_job=False, status=refused)
    drop = settings.get("drop_after_accept") or settings.get("drop")
    if drop:
        return replace(shared, cut=_cut(drop, Cut.RESET))
    if settings.get("hang"):
        return replace(shared, hang_seconds=number(settings["hang"], HANG_SECONDS))
    return replace(shared, status=integer(settings.get("answer_after_accept")))


def read_turn(directives: Mapping[str, Setting], surface: str, *, turn: int) -> AnswerFault:
    """The fault of the read number `turn` (from 0) of a job on a surface.

    `status_429=5 status_502=5` means five 429, then five pages of HTML, then honest answers; a name without a
    number lasts for ever. Anything else of the surface (`status_delay=2`) holds for every read.
    """
    settings = surface_settings(directives, surface)
    start = 0
    for name, value in settings.items():
        turn_settings = _turn_settings(name)
        if turn_settings is None or value is False:
            continue
        times = integer(value)
        if times is None or turn < start + times:
            return read_fault({**settings, **turn_settings})
        start += times
    return read_fault(settings)


def has_turns(directives: Mapping[str, Setting], surface: str) -> bool:
    """Whether reads of this surface must be counted at all."""
    return any(_turn_settings(name) is not None for name in surface_settings(directives, surface))


def distort(answer: Answer, fault: AnswerFault) -> Answer:
    """The answer as the fault leaves it: another status, another body, or another shape."""
    if fault.status is not None and fault.status >= 400:
        answer = error_answer(fault.status, detail=fault.detail, error_type=fault.error_type)
    elif fault.status or fault.success_code:
        answer = replace(answer, status=fault.status or fault.success_code or answer.status)
    if fault.shape is not None:
        answer = replace(answer, body=_shape(answer.body, fault.shape))
    if fault.body is not None:
        answer = _with_body(answer, fault.body)
    if fault.retry_after is not None:
        answer = replace(answer, headers={**answer.headers, "Retry-After": fault.retry_after})
    return answer


def error_answer(status: int, *, detail: Any = None, error_type: str | None = None) -> Answer:
    """A refusal or failure in fal's form: `{detail, error_type}` and its header; HTML for 502 and 504."""
    if status in HTML_CODES and detail is None:
        return Answer(status, HTML_PAGE.format(f"{status} Bad Gateway").encode(), "text/html")
    body: dict[str, Any] = {"detail": detail if detail is not None else DEFAULT_DETAILS.get(status, "Error")}
    kind = error_type or ERROR_TYPES.get(status)
    if kind is not None:
        body["error_type"] = kind
    return Answer(status, json.dumps(body).encode(), headers={"X-Fal-Error-Type": kind} if kind else {})


def _spelled_out(settings: Directives) -> Directives:
    """A rule may name a fault as a turn does: `{"reset": true}`, `{"502": true}`, `{"empty": true}`."""
    meant: Directives = {}
    for name, value in settings.items():
        if value is not False:
            meant |= _turn_settings(name) or {}
    return {**meant, **settings}


def _cut(value: Setting, default: Cut) -> Cut:
    written = str(value).lower()
    return Cut(written) if written in tuple(Cut) else default


def _turn_settings(name: str) -> Directives | None:
    """What one turn of `404`, `empty`, `timeout`, … sets; None for a name that is no turn."""
    if name.isdigit() and len(name) == 3:
        return {"answer": name}
    if name in ("reset", "close", "half"):
        return {"drop": name}
    if name in ("timeout", "hang"):
        return {"hang": True}
    if name in ("empty", "broken", "html"):
        return {"body": name}
    return None


def _shape(body: bytes, shape: str) -> bytes:
    document = json.loads(body)
    if shape == "nested":
        document = {"code": 0, "data": document}
    elif shape == "array":
        document = [document]
    elif shape == "no_id" and isinstance(document, dict):
        # The addresses carry the id too, so they go as well.
        document = {name: value for name, value in document.items() if not _holds_id(name)}
    return json.dumps(document).encode()


def _holds_id(name: str) -> bool:
    return name.endswith("_id") or name.endswith("_url")


def _with_body(answer: Answer, body: str) -> Answer:
    if body == "empty":
        return replace(answer, body=b"")
    if body == "broken":
        return replace(answer, body=answer.body[: max(1, len(answer.body) // 2)])
    if body in ("html", "not_json"):
        page = HTML_PAGE.format(f"{answer.status}").encode()
        return replace(answer, body=page, content_type="text/html")
    return answer
