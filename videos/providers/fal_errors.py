"""fal's error bodies: `{detail, error_type}`, where detail is a text or a list of `{loc, msg, type}`. Pure.

Sources: fal's pages "Model Errors" (typed list, also seen as a bare list) and "Request Error Types" (flat
object, `X-Fal-Error-Type`, `X-Fal-Retryable`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any

from core.http import HttpResponse
from videos.providers.base import Usage
from videos.providers.text import clean_text, parse_json

CONTENT_POLICY = "content_policy_violation"
CLIENT_CANCELLED = "client_cancelled"
MAX_DETAIL = 2000
MAX_RETRY_AFTER = 24 * 3600  # seconds; a longer wait is not believed
MAX_UNITS = Decimal(10) ** 9
# Error types that fal documents as passing: its own runners, not the input.
PASSING = frozenset(
    {"request_timeout", "startup_timeout", "internal_error", "downstream_service_unavailable"}
)
# Their field → ours, as the message catalogue names it.
FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "prompt": "prompt",
        "image_url": "image",
        "image": "image",
        "start_image_url": "image",
        "first_frame_url": "image",
        "duration": "seconds",
        "resolution": "resolution",
        "aspect_ratio": "aspect_ratio",
        "generate_audio": "audio",
        "seed": "seed",
    }
)


@dataclass(frozen=True)
class FalError:
    """One error body. `is_own` says that it has the provider's own form, and does not come from a proxy."""

    is_own: bool
    detail: str
    kind: str
    field: str | None
    is_listed: bool
    retryable: bool

    @property
    def is_content_policy(self) -> bool:
        return self.kind == CONTENT_POLICY

    @property
    def refusal_code(self) -> str:
        """The code of a refused input."""
        if self.is_content_policy:
            return "image_refused" if self.field == "image" else "prompt_refused"
        return "input_invalid"


def read_error(response: HttpResponse) -> FalError:
    """Whatever the answer is, as an error body."""
    return error_of(parse_json(response.body), response.headers)


def error_of(body: Any, headers: Mapping[str, str]) -> FalError:
    """The error in a JSON value (`NOT_JSON` included)."""
    document = body if isinstance(body, dict) else {"detail": body} if _is_error_list(body) else {}
    detail = document.get("detail", document.get("error"))
    entries = [entry for entry in detail if isinstance(entry, dict)] if isinstance(detail, list) else []
    # The content rules decide, wherever in the list they stand.
    entries.sort(key=lambda entry: entry.get("type") != CONTENT_POLICY)
    kind = _first_text(
        entries[0].get("type") if entries else None,
        document.get("error_type"),
        headers.get("x-fal-error-type"),
    )
    kind = CONTENT_POLICY if document.get("error_type") == CONTENT_POLICY else kind
    told = headers.get("x-fal-retryable", "").strip().lower()
    passing = kind in PASSING or kind.startswith("runner_")
    return FalError(
        is_own=bool({"detail", "error", "error_type"} & document.keys()),
        detail=_detail_text(detail, entries),
        kind=kind,
        field=_field_of(entries),
        is_listed=bool(entries),
        retryable=told == "true" or (told != "false" and passing),
    )


def retry_after_seconds(headers: Mapping[str, str]) -> int | None:
    """Retry-After in whole seconds; a date is counted from the answer's own Date. None if unusable."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return min(int(value), MAX_RETRY_AFTER)
    try:
        until = parsedate_to_datetime(value)
        seconds = (until - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(0, int(seconds)), MAX_RETRY_AFTER)


def stated_usage(headers: Mapping[str, str]) -> Usage | None:
    """`x-fal-billable-units`, in the unit in which the model is priced; None if absent or unusable."""
    value = headers.get("x-fal-billable-units")
    if value is None:
        return None
    try:
        units = Decimal(value.strip())
    except InvalidOperation:
        return None
    return Usage(units=units) if units.is_finite() and 0 <= units <= MAX_UNITS else None


def _is_error_list(body: Any) -> bool:
    return (
        isinstance(body, list)
        and bool(body)
        and all(isinstance(entry, dict) and "msg" in entry and "loc" in entry for entry in body)
    )


def _detail_text(detail: Any, entries: list[dict[str, Any]]) -> str:
    if entries:
        return clean_text("; ".join(str(entry.get("msg", "")) for entry in entries[:10]), MAX_DETAIL)
    return clean_text(detail, MAX_DETAIL)


def _field_of(entries: list[dict[str, Any]]) -> str | None:
    location = entries[0].get("loc") if entries else None
    if not isinstance(location, list):
        return None
    names = (FIELDS.get(part) for part in location if isinstance(part, str))
    return next((name for name in names if name), None)


def _first_text(*candidates: Any) -> str:
    return next((text for text in (clean_text(candidate, 80) for candidate in candidates) if text), "")
