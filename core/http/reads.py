"""Reads that may be repeated: status, result, look-up, cancellation, signing keys."""

import asyncio
import ssl
import time
from types import TracebackType
from typing import Self

import httpcore2

from core.http.connections import WatchedBackend
from core.http.exchange import (
    CONNECT_SECONDS,
    MAX_ANSWER_BYTES,
    default_tls,
    exchange,
    failure_word,
    plain_headers,
    request_headers,
)
from core.http.messages import HttpRequest, HttpResponse, ReadFailed

READ_TOTAL_SECONDS = 30.0  # waiting for a free connection included
MAX_CONNECTIONS = 100
KEEP_ALIVE_SECONDS = 5.0  # shorter than any common server's, so that a reused connection is rarely a dead one
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class ReadClient:
    """A pool of connections for repeatable requests; one per provider, so that a hanging one starves no
    other.

    Nothing is retried and no redirect is followed.
    """

    def __init__(
        self,
        *,
        max_connections: int = MAX_CONNECTIONS,
        total_seconds: float = READ_TOTAL_SECONDS,
        max_body_bytes: int = 4 * MAX_ANSWER_BYTES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._total_seconds = total_seconds
        self._max_body_bytes = max_body_bytes
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls or default_tls(),
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=KEEP_ALIVE_SECONDS,
            retries=0,
            network_backend=WatchedBackend(),
        )

    async def __aenter__(self) -> Self:
        await self._pool.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self._pool.__aexit__(kind, error, trace)

    async def get(self, request: HttpRequest, *, total_seconds: float | None = None) -> HttpResponse:
        """Send a GET, or another request that is safe to repeat (the PUT of a cancellation).

        Raises: ReadFailed on any trouble of the transport; ValueError for a method that is not repeatable.
        """
        if request.method not in REPEATABLE:
            raise ValueError(f"{request.method} is sent by send_once alone")
        seconds = self._total_seconds if total_seconds is None else total_seconds
        received: list[HttpResponse] = []
        try:
            async with asyncio.timeout(seconds):
                await exchange(self._pool, request, max_body_bytes=self._max_body_bytes, keep=received.append)
        except Exception as error:
            if not received:
                raise ReadFailed(failure_word(error)) from error
        return received[0]


def get_blocking(
    request: HttpRequest,
    *,
    connect_seconds: float = CONNECT_SECONDS,
    total_seconds: float = 10.0,
    max_body_bytes: int = MAX_ANSWER_BYTES,
) -> HttpResponse:
    """One GET for callers that are not async (a webhook view that needs a signing key).

    Raises: ReadFailed on any trouble, an over-long answer included.
    """
    if request.method != "GET":
        raise ValueError("only a GET may be sent like this")
    until = time.monotonic() + total_seconds
    limits = {
        "connect": connect_seconds,
        "read": total_seconds,
        "write": connect_seconds,
        "pool": connect_seconds,
    }
    body = bytearray()
    try:
        with (
            httpcore2.ConnectionPool(ssl_context=default_tls(), max_connections=1) as pool,
            pool.stream(
                "GET", request.url, headers=request_headers(request), extensions={"timeout": limits}
            ) as answer,
        ):
            for chunk in answer.iter_stream():
                body += chunk
                if len(body) > max_body_bytes:
                    raise ReadFailed("too_large")
                if time.monotonic() > until:
                    raise ReadFailed("timeout")
            return HttpResponse(answer.status, plain_headers(answer.headers), bytes(body), False)
    except ReadFailed:
        raise
    except Exception as error:
        raise ReadFailed(failure_word(error)) from error
