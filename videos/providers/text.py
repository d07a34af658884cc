"""What others wrote, made fit to be stored and shown. Pure; nothing here raises, whatever it is given."""

import json
import unicodedata
from collections.abc import Iterable
from typing import Any

REDACTED = "[redacted]"
MIN_SECRET = 6  # shorter ones would tear holes into ordinary words
# Marks that turn the direction of the text around them: a log line or an admin page could be made to lie with
# them.
DIRECTION_MARKS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean_text(text: object, limit: int) -> str:
    """At most `limit` code points without control characters (NUL included), lone surrogates or direction
    marks.

    A run of white space becomes one space. Anything that is not text gives an empty string.
    """
    if not isinstance(text, str):
        return ""
    # Twice the limit is enough to fill it after cleaning in all but absurd cases, and bounds the work.
    kept = "".join(_clean_character(character) for character in text[: 2 * limit + 1000])
    return " ".join(kept.split())[:limit]


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret replaced; the longest first, as one may hold another."""
    for secret in sorted({secret for secret in secrets if len(secret) >= MIN_SECRET}, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def parse_json(body: bytes) -> Any:
    """The JSON value of a body, or `NOT_JSON` for whatever is none (HTML, nothing, broken, nested too
    deep).
    """
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return NOT_JSON


def _clean_character(character: str) -> str:
    if character in DIRECTION_MARKS:
        return ""
    category = unicodedata.category(character)
    if category == "Cc":
        return " "
    return "" if category == "Cs" or ord(character) & 0xFFFE == 0xFFFE else character


def _refuse_constant(name: str) -> Any:
    """NaN and Infinity are no JSON, and no database stores them in a JSON column."""
    raise ValueError(name)


class _NotJson:
    """The type of `NOT_JSON`, since null is a JSON value of its own."""

    def __repr__(self) -> str:
        return "NOT_JSON"


NOT_JSON = _NotJson()
