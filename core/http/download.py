"""Fetching a result from an address that somebody else chose.

Note [Checked address]
A host name is judged before it is looked up, and every address it leads to is judged before it is connected
to; the connection then goes to that very address, so that a second look-up cannot change it (DNS rebinding).
Host and SNI still carry the name. A redirect starts again from the beginning.
"""

import asyncio
import hashlib
import socket
import ssl
from collections.abc import AsyncIterable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urljoin

import httpcore2

from core.http.addresses import AllowedOrigins, is_public, parse_literal, parse_origin
from core.http.connections import WatchedBackend
from core.http.exchange import default_tls, failure_word, plain_headers, request_headers
from core.http.messages import DownloadFailed, DownloadRefused, HttpRequest
from core.http.sniff import SNIFF_BYTES, sniff_video

MAX_REDIRECTS = 3
MAX_ADDRESSES = 4  # tried one after the other, each for CONNECT_SECONDS
CONNECT_SECONDS = 10.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Sink(Protocol):
    """Where the bytes go. What it raises is the caller's own trouble and reaches the caller unchanged."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True)
class Downloaded:
    """A complete download. `content_type` is what the bytes are (None: no video that we know);
    `declared_type` is what the server said; `size` in bytes; `sha256` in hexadecimal.
    """

    content_type: str | None
    size: int
    sha256: str
    declared_type: str = ""


async def download(
    url: str,
    *,
    sink: Sink,
    allowed_origins: AllowedOrigins,
    max_bytes: int,
    read_seconds: float,
    total_seconds: float,
    tls: ssl.SSLContext | None = None,
) -> Downloaded:
    """Fetch `url` into `sink`. `read_seconds` bounds each wait, `total_seconds` the whole.

    Only https to allowed hosts at public addresses, unless the operator named the host and port. At most
    `MAX_REDIRECTS` redirects are followed, each judged anew.

    Raises: DownloadRefused when asking again will not help; DownloadFailed when it may.
    """
    limit = asyncio.timeout(total_seconds)
    try:
        async with limit:
            for _ in range(MAX_REDIRECTS + 1):
                backend = _CheckedBackend(any_address=_judge(url, allowed_origins))
                outcome = await _fetch(
                    url, backend=backend, sink=sink, max_bytes=max_bytes, read_seconds=read_seconds, tls=tls
                )
                if isinstance(outcome, Downloaded):
                    return outcome
                url = outcome
    except TimeoutError as error:
        if limit.expired():
            raise DownloadFailed("timeout") from error
        raise
    raise DownloadRefused("too_many_redirects")


async def _fetch(
    url: str,
    *,
    backend: httpcore2.AsyncNetworkBackend,
    sink: Sink,
    max_bytes: int,
    read_seconds: float,
    tls: ssl.SSLContext | None,
) -> Downloaded | str:
    """One request: the finished download, or the address that it was redirected to."""
    limits = {"connect": CONNECT_SECONDS, "read": read_seconds, "write": read_seconds, "pool": None}
    request = HttpRequest("GET", url)
    try:
        async with (
            httpcore2.AsyncConnectionPool(
                ssl_context=tls or default_tls(), max_connections=1, retries=0, network_backend=backend
            ) as connection,
            connection.stream(
                "GET", url, headers=request_headers(request), extensions={"timeout": limits}
            ) as answer,
        ):
            headers = plain_headers(answer.headers)
            if answer.status in REDIRECTS:
                return _redirect_target(url, headers.get("location", ""))
            if answer.status != 200:
                raise DownloadFailed("status", answer.status)
            _judge_headers(headers, max_bytes)
            return await _drain(answer.aiter_stream(), headers, sink=sink, max_bytes=max_bytes)
    except _TRANSPORT_FAILURES as error:
        raise DownloadFailed(failure_word(error)) from error


async def _drain(
    chunks: AsyncIterable[bytes], headers: Mapping[str, str], *, sink: Sink, max_bytes: int
) -> Downloaded:
    """Write the body to the sink, counting, hashing and keeping its beginning. Empty bodies are failures."""
    digest = hashlib.sha256()
    first = b""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise DownloadRefused("too_large")
        if len(first) < SNIFF_BYTES:
            first += chunk[: SNIFF_BYTES - len(first)]
        digest.update(chunk)
        sink.write(chunk)
    if size == 0:
        raise DownloadFailed("empty", 200)
    return Downloaded(sniff_video(first), size, digest.hexdigest(), headers.get("content-type", "")[:100])


def _judge(url: str, allowed: AllowedOrigins) -> bool:
    """Whether an allowed address may lead anywhere. Raises: DownloadRefused if it is not allowed at all."""
    origin = parse_origin(url)
    if not allowed.is_allowed(origin):
        raise DownloadRefused("host_not_allowed")
    return allowed.is_named(origin)


def _judge_headers(headers: Mapping[str, str], max_bytes: int) -> None:
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length) > max_bytes:
        raise DownloadRefused("too_large")
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        # A compressed body would make the size cap and the length check mean something else.
        raise DownloadFailed("encoded", 200)


def _redirect_target(url: str, location: str) -> str:
    if not location:
        raise DownloadFailed("redirect_without_target")
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise DownloadRefused("address_not_valid") from error


class _CheckedBackend(WatchedBackend):
    """Connects to the very address that it has judged. See Note [Checked address]."""

    def __init__(self, *, any_address: bool) -> None:
        super().__init__()
        self._any_address = any_address

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await _addresses(host, port)
        chosen = addresses if self._any_address else [a for a in addresses if _is_public_text(a)]
        if not chosen:
            raise DownloadRefused("address_not_public")
        failure: Exception | None = None
        for address in chosen[:MAX_ADDRESSES]:
            try:
                return await super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # `chosen` is not empty, and every try that does not return has failed
        raise failure


async def _addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, in the resolver's order, each once."""
    if parse_literal(host) is not None:
        return [host]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise DownloadFailed("dns") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_public_text(text: str) -> bool:
    """Addresses with a zone (`fe80::1%eth0`) are link-local, so never public."""
    address = parse_literal(text)
    return address is not None and is_public(address)


_TRANSPORT_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
)
