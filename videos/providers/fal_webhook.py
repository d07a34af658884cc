"""fal's call-backs: Ed25519 over request id, user id, time and the hash of the raw body. Pure but for the key
source.

Source: fal's page on webhooks. Message: the three headers and the hexadecimal SHA-256 of the body, joined by
line feeds; the signature in hexadecimal; times off by more than five minutes are refused.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from videos.providers.base import SigningKeys, WebhookNotice, WebhookRefused
from videos.providers.fal_answers import upstream_id_of
from videos.providers.jwks import KeysUnavailable
from videos.providers.text import clean_text, parse_json

MAX_SKEW_SECONDS = 300
SIGNED_HEADERS = ("x-fal-webhook-request-id", "x-fal-webhook-user-id", "x-fal-webhook-timestamp")
SIGNATURE_HEADER = "x-fal-webhook-signature"
MAX_WORD = 40


def verify(headers: Mapping[str, str], raw_body: bytes, *, now: datetime, keys: SigningKeys) -> None:
    """Believe a call-back, or not. Cheap checks come first, so that a stranger's calls cost no fetch of keys.

    Raises: WebhookRefused with 400 (malformed), 401 (missing, stale or wrong), 503 (no keys to be had now).
    """
    given = {name.lower(): value for name, value in headers.items()}
    parts = [given.get(name, "") for name in SIGNED_HEADERS]
    signature = given.get(SIGNATURE_HEADER, "")
    if not all(parts) or not signature:
        raise WebhookRefused(401, "signature_missing")
    _check_time(parts[2], now)
    try:
        signed = bytes.fromhex(signature)
    except ValueError as error:
        raise WebhookRefused(400, "signature_not_hex") from error
    if len(signed) != 64:
        raise WebhookRefused(400, "signature_not_hex")
    message = "\n".join([*parts, hashlib.sha256(raw_body).hexdigest()]).encode("utf-8", "surrogatepass")
    try:
        if _fits(keys.current(), signed, message):
            return
        renewed = keys.refetched()
    except KeysUnavailable as error:
        raise WebhookRefused(503, "keys_unavailable") from error
    if renewed is None or not _fits(renewed, signed, message):
        raise WebhookRefused(401, "signature_wrong")


def read(raw_body: bytes) -> WebhookNotice:
    """Which request the call speaks of. Raises: WebhookRefused (400) if it names none."""
    body = parse_json(raw_body)
    upstream_id = upstream_id_of(body) if isinstance(body, dict) else None
    if upstream_id is None:
        raise WebhookRefused(400, "no_request_id")
    return WebhookNotice(upstream_id=upstream_id, word=clean_text(body.get("status"), MAX_WORD))


def _check_time(written: str, now: datetime) -> None:
    if not (written.isascii() and written.isdigit() and len(written) <= 12):
        raise WebhookRefused(400, "timestamp_not_valid")
    if abs(now.timestamp() - int(written)) > MAX_SKEW_SECONDS:
        raise WebhookRefused(401, "timestamp_stale")


def _fits(keys: Sequence[bytes], signature: bytes, message: bytes) -> bool:
    for key in keys:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except InvalidSignature:
            continue
        return True
    return False
