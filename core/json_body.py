"""Reading JSON bodies strictly: what is not plain, finite, shallow JSON is refused by name."""

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from core.errors import Allowed, Invalid, TooLarge

MAX_BODY_BYTES = 64 * 1024
MAX_DEPTH = 8  # the API's own documents are two deep


def _refuse_constant(name: str) -> Any:
    raise Invalid(field="request", limit="not_json")


def _without_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Invalid(field=name[:64], limit="given_once")
            seen.add(name)
    return members


def _depth_of(text: str) -> int:
    """The deepest nesting of a JSON text, without recursion and without regard to what is in strings."""
    depth = deepest = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def parse_object(raw: bytes, *, limit: int = MAX_BODY_BYTES) -> dict[str, Any]:
    """The JSON object in `raw`.

    Raises: TooLarge over `limit` bytes; Invalid (field `request`) for anything that is not one JSON object in
    UTF-8 of finite numbers, names given once, and at most MAX_DEPTH levels.
    """
    if len(raw) > limit:
        raise TooLarge(size=len(raw), limit=limit)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(field="request", limit="not_json") from error
    if _depth_of(text) > MAX_DEPTH:
        raise Invalid(field="request", limit=Allowed("levels", {"n": MAX_DEPTH}))
    try:
        document = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_without_repeated_names
        )
    except (ValueError, RecursionError) as error:
        raise Invalid(field="request", limit="not_json") from error
    if not isinstance(document, dict):
        raise Invalid(field="request", limit="not_json")
    return document


class StrictJSONParser(BaseParser):
    """DRF's door to `parse_object`."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        announced = (parser_context or {})["request"].META.get("CONTENT_LENGTH") or "0"
        if announced.isdigit() and int(announced) > MAX_BODY_BYTES:
            raise TooLarge(size=int(announced), limit=MAX_BODY_BYTES)
        return parse_object(stream.read(MAX_BODY_BYTES + 1))
