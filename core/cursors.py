"""Opaque cursors of newest-first lists: the time and id of the last row shown."""

import base64
import binascii
from datetime import UTC, datetime
from uuid import UUID

from core.errors import Allowed, Invalid

MAX_LIMIT = 100
DEFAULT_LIMIT = 30


def encode(at: datetime, key: UUID) -> str:
    return base64.urlsafe_b64encode(f"{at.isoformat()} {key.hex}".encode()).decode().rstrip("=")


def decode(cursor: str) -> tuple[datetime, UUID] | None:
    """Where the page before ended; None for the first page. Raises: Invalid for anything we did not make."""
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        at, key = text.rsplit(" ", 1)
        instant = datetime.fromisoformat(at)
        if instant.tzinfo is None:
            raise ValueError("a time without a zone")
        return instant.astimezone(UTC), UUID(hex=key)
    except (ValueError, OverflowError, binascii.Error) as error:
        raise Invalid(field="cursor", limit="cursor") from error


def read_limit(text: str | None) -> int:
    """The page length asked for. Raises: Invalid."""
    if text is None or text == "":
        return DEFAULT_LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 3 or not 1 <= int(text) <= MAX_LIMIT:
        raise Invalid(field="limit", limit=Allowed("between", {"low": 1, "high": MAX_LIMIT}))
    return int(text)
