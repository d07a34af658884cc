"""One paid request, sent exactly once.

Note [One request, one connection]
A pooled connection that the server has just closed looks exactly like an answer lost after acceptance. So a
request that must not be repeated goes out on a connection of its own, which tells "never sent" from "answer
lost": the connection is watched, and the moment before its first byte is the border between the two.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import cache

import httpcore2
import structlog

from core.http.bodies import capped_body
from core.http.connections import WatchedBackend
from core.http.deadline import Deadline
from core.http.messages import AnswerLost, HttpRequest, HttpResponse, NotSent

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 5.0  # name look-up, TCP and TLS together
READ_SECONDS = 25.0  # from the first byte out to the last byte in; with the above, well below a lease of 60 s
MAX_ANSWER_BYTES = 256 * 1024


async def send_once(
    request: HttpRequest,
    *,
    deadline: Deadline,
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
    max_body_bytes: int = MAX_ANSWER_BYTES,
    tls: ssl.SSLContext | None = None,
) -> HttpResponse:
    """Send one request on a fresh connection, at most once, and close the connection.

    Directly before the first byte the deadline is checked once more. `read_seconds` bounds everything after
    that byte together, so that a server that drips can't hold the caller. Redirects are not followed.

    Raises: NotSent if no byte of the request was written; AnswerLost for any trouble after the first byte.
    """
    if deadline.passed:
        raise NotSent("deadline_passed")
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(connect_seconds)
    gate = _Gate(deadline, lambda: limit.reschedule(loop.time() + read_seconds))
    received: list[HttpResponse] = []
    try:
        async with limit, _fresh_connection(gate, tls) as connection:
            await exchange(connection, request, max_body_bytes=max_body_bytes, keep=received.append)
    except NotSent:
        raise
    except Exception as error:
        if received:  # trouble while closing: an answer once received is never lost
            return received[0]
        if gate.opened:
            raise AnswerLost(failure_word(error)) from error
        word = "connect_timeout" if isinstance(error, TimeoutError) else failure_word(error)
        raise NotSent(word) from error
    return received[0]


async def exchange(
    connection: httpcore2.AsyncConnectionPool,
    request: HttpRequest,
    *,
    max_body_bytes: int,
    keep: Callable[[HttpResponse], None],
) -> None:
    """Send a request through a connection pool and hand its answer to `keep` as soon as it is read, up to
    a cap; closing comes after that. Raises what httpcore2 raises.
    """
    async with connection.stream(
        request.method, request.url, headers=request_headers(request), content=request.body
    ) as answer:
        headers = plain_headers(answer.headers)
        body, truncated = await capped_body(
            answer.aiter_stream(), encoding=headers.get("content-encoding", ""), limit=max_body_bytes
        )
        keep(HttpResponse(answer.status, headers, body, truncated))


def request_headers(request: HttpRequest) -> list[tuple[str, str]]:
    """The headers as sent: those of the request, and the few that this client decides."""
    decided = {"accept-encoding": "identity", "user-agent": "oncereel"}
    given = {name.lower() for name in request.headers}
    return [
        *request.headers.items(),
        *((name, value) for name, value in decided.items() if name not in given),
    ]


def plain_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Header names in lower case; the last of repeated ones counts."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def failure_word(error: BaseException) -> str:
    """A short machine word for a failed exchange, judged by what lies at its root."""
    for cause in _causes(error):
        for kind, word in _WORDS:
            if isinstance(cause, kind):
                return word
    # Nothing that a network does: a broken installation, say, which trying again would only hide.
    log.error("exchange_not_understood", error=type(error).__name__, detail=str(error)[:200])
    return "failed"


@cache
def default_tls() -> ssl.SSLContext:
    """The trusted authorities of this machine (or of SSL_CERT_FILE), loaded once: it takes some 20 ms."""
    return httpcore2.default_ssl_context()


class _Gate:
    """The border before the first byte: passed once, and only before the deadline."""

    def __init__(self, deadline: Deadline, on_open: Callable[[], None]) -> None:
        self._deadline = deadline
        self._on_open = on_open
        self.opened = False

    def open(self) -> None:
        """Raises: NotSent when the deadline has passed while connecting."""
        if self.opened:
            return
        if self._deadline.passed:
            raise NotSent("deadline_passed")
        self._on_open()
        self.opened = True


@asynccontextmanager
async def _fresh_connection(
    gate: _Gate, tls: ssl.SSLContext | None
) -> AsyncIterator[httpcore2.AsyncConnectionPool]:
    async with httpcore2.AsyncConnectionPool(
        ssl_context=tls or default_tls(),
        max_connections=1,
        max_keepalive_connections=0,
        retries=0,
        network_backend=WatchedBackend(gate.open),
    ) as connection:
        yield connection


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The chain of causes, the root first."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__
    return reversed(chain)


# The first kind that fits the innermost cause counts.
_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "dns"),
    (UnicodeError, "dns"),  # a name that cannot be written as labels
    (ssl.SSLError, "tls"),
    (ConnectionRefusedError, "refused"),
    (ConnectionResetError, "reset"),
    (BrokenPipeError, "reset"),
    (TimeoutError, "timeout"),
    (httpcore2.TimeoutException, "timeout"),
    (httpcore2.ConnectError, "connect_failed"),
    (httpcore2.RemoteProtocolError, "protocol"),
    (httpcore2.LocalProtocolError, "request_not_valid"),
    (httpcore2.UnsupportedProtocol, "request_not_valid"),
    (httpcore2.NetworkError, "broken"),
    (OSError, "connect_failed"),
)
