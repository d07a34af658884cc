"""What a client may ask for. Pure: syntax first, then what the model offers; every refusal names its
field.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from core.errors import Allowed, Invalid
from core.ids import BATCH_PREFIX, canonical_client_id
from core.money import InvalidAmount, parse_amount
from videos.catalogue import MAX_PROMPT_CODE_POINTS, ModelSpec

HASH_VERSION = "1"  # of the canonical form below
MAX_SECONDS = 3600  # syntax only; the model decides
MAX_SEED = 2**31 - 1  # the smallest range of the providers
MAX_URL = 2048
NOT_HASHED = frozenset({"id", "max_price"})  # the key itself, and what may differ when a client asks again
T = TypeVar("T")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/ -]{0,63}")


@dataclass(frozen=True, kw_only=True)
class VideoRequest:
    """A request whose syntax is right. None: not given, so the model's default counts."""

    client_id: str
    request_hash: str
    fields: Mapping[str, Any]
    model: str
    prompt: str
    seconds: int | None
    resolution: str | None
    aspect_ratio: str | None
    audio: bool | None
    seed: int | None
    image_file: UUID | None
    image_url: str | None
    max_price_micros: int | None


@dataclass(frozen=True, kw_only=True)
class Order:
    """A request made definite by what the model offers."""

    spec: ModelSpec
    seconds: int
    resolution: str
    aspect_ratio: str
    audio: bool
    seed: int | None


def read_request(fields: Mapping[str, Any]) -> VideoRequest:
    """Check the syntax of a request's fields.

    Raises: Invalid, naming the first field that is not as it must be. Only syntax is judged here, so that a
    known id is answered from its claim whatever the catalogue says today.
    """
    for name in fields:
        if name not in _READERS:
            raise Invalid(field=name[:64], limit="no_such_field")
    for name in ("id", "model", "prompt"):
        if name not in fields:
            raise Invalid(field=name, limit="required")
    read: dict[str, Any] = {
        name: reader(name, fields[name]) for name, reader in _READERS.items() if name in fields
    }
    if "image_file" in read and "image_url" in read:
        raise Invalid(field="image_url", limit="one_image")
    return VideoRequest(
        client_id=read["id"],
        request_hash=hash_fields(fields),
        fields={name: value for name, value in fields.items() if name != "id"},
        model=read["model"],
        prompt=read["prompt"],
        seconds=read.get("seconds"),
        resolution=read.get("resolution"),
        aspect_ratio=read.get("aspect_ratio"),
        audio=read.get("audio"),
        seed=read.get("seed"),
        image_file=read.get("image_file"),
        image_url=read.get("image_url"),
        max_price_micros=read.get("max_price"),
    )


def hash_fields(fields: Mapping[str, Any]) -> str:
    """The versioned hash of the fields as sent, before any default; order and white space do not matter."""
    kept = {name: value for name, value in fields.items() if name not in NOT_HASHED}
    canonical = json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"{HASH_VERSION}:{hashlib.sha256(canonical.encode()).hexdigest()}"


def judge_order(request: VideoRequest, spec: ModelSpec) -> Order:
    """Fill the model's defaults in and refuse what it does not offer. Raises: Invalid."""
    if len(request.prompt) > spec.max_prompt:
        raise Invalid(field="prompt", limit=Allowed("characters", {"n": spec.max_prompt}))
    if spec.input == "text":
        for name in ("image_file", "image_url"):
            if name in request.fields:
                raise Invalid(field=name, limit="image_unused")
    if request.audio and not spec.audio:
        raise Invalid(field="audio", limit="not_offered")
    if request.seed is not None and not spec.accepts_seed:
        raise Invalid(field="seed", limit="not_offered")
    return Order(
        spec=spec,
        seconds=_offered("seconds", request.seconds, spec.default_seconds, spec.seconds),
        resolution=_offered("resolution", request.resolution, spec.default_resolution, spec.resolutions),
        aspect_ratio=_offered(
            "aspect_ratio", request.aspect_ratio, spec.default_aspect_ratio, spec.aspect_ratios
        ),
        audio=spec.default_audio if request.audio is None else request.audio,
        seed=request.seed,
    )


def _offered(name: str, value: T | None, default: T, choices: tuple[T, ...]) -> T:
    if value is None:
        return default
    if value not in choices:
        raise Invalid(field=name, limit=Allowed("one_of", {"choices": list(choices)}))
    return value


def _client_id(name: str, value: Any) -> str:
    canonical = canonical_client_id(_text(name, value))
    if canonical is None:
        raise Invalid(field=name, limit="id_form")
    if canonical.startswith(BATCH_PREFIX):
        raise Invalid(field=name, limit="id_reserved")
    return canonical


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Invalid(field=name, limit="text")
    return value


def _prompt(name: str, value: Any) -> str:
    """Kept byte for byte; only what a database or a provider would choke on is refused."""
    text = _text(name, value)
    if not text.strip():
        raise Invalid(field=name, limit="required")
    if any(
        unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\r\t" for character in text
    ):
        raise Invalid(field=name, limit="plain_text")
    if len(text) > MAX_PROMPT_CODE_POINTS:
        raise Invalid(field=name, limit=Allowed("characters", {"n": MAX_PROMPT_CODE_POINTS}))
    return text


def _word(name: str, value: Any) -> str:
    text = _text(name, value)
    if not _WORD.fullmatch(text):
        raise Invalid(field=name, limit="plain_text")
    return text


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(field=name, limit="whole_number")
    if not low <= value <= high:
        raise Invalid(field=name, limit=Allowed("between", {"low": low, "high": high}))
    return value


def _seconds(name: str, value: Any) -> int:
    return _whole(name, value, 1, MAX_SECONDS)


def _seed(name: str, value: Any) -> int:
    return _whole(name, value, 0, MAX_SEED)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Invalid(field=name, limit="true_or_false")
    return value


def _file_id(name: str, value: Any) -> UUID:
    text = _text(name, value)
    try:
        return UUID(text)
    except ValueError as error:
        raise Invalid(field=name, limit="file_id") from error


def _address(name: str, value: Any) -> str:
    text = _text(name, value)
    if len(text) > MAX_URL or not text.isascii() or not text.isprintable():
        raise Invalid(field=name, limit="address")
    try:
        parts = urlsplit(text)
    except ValueError as error:  # half an IPv6 address
        raise Invalid(field=name, limit="address") from error
    if parts.scheme != "https" or not parts.hostname or parts.username:
        raise Invalid(field=name, limit="address")
    return text


def _amount(name: str, value: Any) -> int:
    try:
        amount = parse_amount(_text(name, value))
    except InvalidAmount as error:
        raise Invalid(field=name, limit="amount") from error
    if amount < 0:
        raise Invalid(field=name, limit="amount")
    return amount


_READERS = {
    "id": _client_id,
    "model": _word,
    "prompt": _prompt,
    "seconds": _seconds,
    "resolution": _word,
    "aspect_ratio": _word,
    "audio": _flag,
    "seed": _seed,
    "image_file": _file_id,
    "image_url": _address,
    "max_price": _amount,
}
