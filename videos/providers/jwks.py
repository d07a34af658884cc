"""The public keys that a provider signs its call-backs with, fetched from its JWKS address and kept for a
while.
"""

import base64
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from core.http import HttpRequest, HttpResponse, ReadFailed, get_blocking
from videos.providers.text import parse_json

MAX_AGE_SECONDS = 24 * 3600  # the provider's own rule: to be cached for no longer than a day
MIN_REFETCH_SECONDS = (
    60  # an unknown key is worth one fetch a minute; forged calls must not become a flood of reads
)
MAX_KEYS = 20
KEY_BYTES = 32

Fetch = Callable[[HttpRequest], HttpResponse]


class KeysUnavailable(Exception):
    """No fresh key set is at hand: the call-back can't be judged now and should be repeated by the
    provider.
    """


class JwksCache:
    """The Ed25519 keys of one JWKS address. Safe to share between threads."""

    def __init__(
        self, url: str, *, fetch: Fetch = get_blocking, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: tuple[bytes, ...] = ()
        self._fetched_at: float | None = None
        self._tried_at: float | None = None

    def current(self) -> Sequence[bytes]:
        """The keys, fetched when there are none or they are a day old. Raises: KeysUnavailable."""
        with self._lock:
            if not self._is_fresh() and self._may_try():
                self._refetch()
            if not self._is_fresh():
                raise KeysUnavailable(self._url)
            return self._keys

    def refetched(self) -> Sequence[bytes] | None:
        """The keys fetched anew, or None when the last try is less than a minute old or this one failed."""
        with self._lock:
            if not self._may_try():
                return None
            return self._keys if self._refetch() else None

    def _is_fresh(self) -> bool:
        return self._fetched_at is not None and self._clock() - self._fetched_at < MAX_AGE_SECONDS

    def _may_try(self) -> bool:
        return self._tried_at is None or self._clock() - self._tried_at >= MIN_REFETCH_SECONDS

    def _refetch(self) -> bool:
        """Fetch and replace; a failed or empty answer leaves what was there."""
        self._tried_at = self._clock()
        try:
            response = self._fetch(HttpRequest("GET", self._url, {"accept": "application/json"}))
        except ReadFailed:
            return False
        keys = read_keys(response.body) if response.status == 200 else ()
        if not keys:
            return False
        self._keys = keys
        self._fetched_at = self._tried_at
        return True


def read_keys(body: bytes) -> tuple[bytes, ...]:
    """The raw Ed25519 keys of a JWKS (RFC 8037); other and broken entries are left out."""
    document = parse_json(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    found = (_read_key(entry) for entry in entries[:MAX_KEYS]) if isinstance(entries, list) else ()
    return tuple(key for key in found if key)


def _read_key(entry: Any) -> bytes | None:
    if not isinstance(entry, dict) or entry.get("kty") != "OKP" or entry.get("crv") != "Ed25519":
        return None
    written = entry.get("x")
    if not isinstance(written, str):
        return None
    try:
        key = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4))
    except ValueError:
        return None
    return key if len(key) == KEY_BYTES else None
