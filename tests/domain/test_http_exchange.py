"""One paid request: sent at most once, and the border between "never sent" and "answer lost" is exact."""

import asyncio
import gzip
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.http import AnswerLost, Deadline, HttpRequest, HttpResponse, NotSent, send_once
from tests.domain.loopback import Script, Server, Visit, certificate, serving, unused_port

BODY = b'{"prompt":"a heron"}'


def post(url: str) -> HttpRequest:
    return HttpRequest("POST", f"{url}/fal-ai/veo3.1", {"authorization": "Key k", "x-one": "1"}, BODY)


def send(
    script: Script, *, read_seconds: float = 5.0, max_body_bytes: int = 1000, deadline: Deadline | None = None
) -> tuple[HttpResponse | Exception, Server]:
    """Send one POST to a scripted server; its answer or what was raised, and what the server saw."""

    async def run() -> tuple[HttpResponse | Exception, Server]:
        async with serving(script) as server:
            try:
                outcome: HttpResponse | Exception = await send_once(
                    post(server.url),
                    deadline=deadline or Deadline(10),
                    read_seconds=read_seconds,
                    max_body_bytes=max_body_bytes,
                )
            except (NotSent, AnswerLost) as error:
                outcome = error
            await asyncio.sleep(0.05)  # a second request would arrive now
            return outcome, server

    return asyncio.run(run())


def send_to(url: str, **limits: float) -> Exception:
    async def run() -> HttpResponse:
        return await send_once(post(url), deadline=Deadline(10), **limits)  # type: ignore[arg-type]

    with pytest.raises((NotSent, AnswerLost)) as raised:
        asyncio.run(run())
    return raised.value


async def accept(visit: Visit) -> None:
    await visit.read_request()
    await visit.answer(200, b'{"request_id":"r1"}', X_Fal_Request_Id="r1")


def test_one_request_is_one_post_with_our_bytes_and_the_answer_is_read_whole() -> None:
    outcome, server = send(accept)

    assert outcome == HttpResponse(
        200,
        {"content-length": "19", "connection": "close", "x-fal-request-id": "r1"},
        b'{"request_id":"r1"}',
        False,
    )
    head, _, body = server.received.partition(b"\r\n\r\n")
    assert body == BODY
    assert head.split(b"\r\n")[0] == b"POST /fal-ai/veo3.1 HTTP/1.1"
    assert b"authorization: Key k" in head
    assert b"accept-encoding: identity" in head
    assert len(server.visits) == 1


def test_the_connection_is_closed_even_if_the_server_would_keep_it() -> None:
    ended = asyncio.Event()

    async def keep(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(200, b"{}", connection="keep-alive")
        assert await visit.reader.read() == b""
        ended.set()

    async def run() -> None:
        async with serving(keep) as server:
            await send_once(post(server.url), deadline=Deadline(10))
            await asyncio.wait_for(ended.wait(), 2)

    asyncio.run(run())
    assert ended.is_set()


def test_a_refused_connection_is_not_sent() -> None:
    error = send_to(f"http://127.0.0.1:{unused_port()}")
    assert (type(error), str(error)) == (NotSent, "refused")


def test_an_unknown_host_is_not_sent() -> None:
    error = send_to("http://no-such-host.invalid")
    assert (type(error), str(error)) == (NotSent, "dns")


def test_a_server_that_speaks_no_tls_gets_no_byte_of_the_request() -> None:
    async def plain(visit: Visit) -> None:
        visit.received += await visit.reader.read(65536)
        await visit.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def run() -> tuple[NotSent, bytes]:
        async with serving(plain) as server:
            with pytest.raises(NotSent) as raised:
                await send_once(post(f"https://127.0.0.1:{server.port}"), deadline=Deadline(10))
            return raised.value, server.received

    error, received = asyncio.run(run())
    assert error.reason == "tls"
    assert received[:1] == b"\x16"  # the first byte of a TLS handshake: the server was reached
    assert b"POST" not in received
    assert b"heron" not in received


def test_a_certificate_that_is_not_trusted_gets_no_byte_of_the_request(tmp_path: Path) -> None:
    server_tls, _ = certificate(tmp_path, "127.0.0.1")

    async def run() -> tuple[NotSent, bytes]:
        async with serving(accept, tls=server_tls) as server:
            with pytest.raises(NotSent) as raised:
                await send_once(post(f"https://127.0.0.1:{server.port}"), deadline=Deadline(10))
            return raised.value, server.received

    error, received = asyncio.run(run())
    assert error.reason == "tls"
    assert received == b""


def test_over_tls_the_request_is_sent_once(tmp_path: Path) -> None:
    server_tls, client_tls = certificate(tmp_path, "127.0.0.1")

    async def run() -> tuple[HttpResponse, Server]:
        async with serving(accept, tls=server_tls) as server:
            url = f"https://127.0.0.1:{server.port}"
            return await send_once(post(url), deadline=Deadline(10), tls=client_tls), server

    answer, server = asyncio.run(run())
    assert answer.body == b'{"request_id":"r1"}'
    assert server.posts == 1


def test_a_handshake_without_end_is_a_connect_timeout_and_not_sent() -> None:
    closed = asyncio.Event()

    async def silent(visit: Visit) -> None:
        while data := await visit.reader.read(65536):
            visit.received += data
        closed.set()

    async def run() -> tuple[NotSent, bytes, float]:
        async with serving(silent) as server:
            started = time.monotonic()
            with pytest.raises(NotSent) as raised:
                url = f"https://127.0.0.1:{server.port}"
                await send_once(post(url), deadline=Deadline(10), connect_seconds=0.3)
            took = time.monotonic() - started
            await asyncio.wait_for(closed.wait(), 2)  # and the socket is not left open
            return raised.value, server.received, took

    error, received, took = asyncio.run(run())
    assert error.reason == "connect_timeout"
    assert b"POST" not in received
    assert 0.25 < took < 1.5


async def _reset(visit: Visit) -> None:
    await visit.read_request()
    visit.reset()


async def _close(visit: Visit) -> None:
    await visit.read_request()


async def _half(visit: Visit) -> None:
    await visit.read_request()
    await visit.send(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"request')


async def _nonsense(visit: Visit) -> None:
    await visit.read_request()
    await visit.send(b"no HTTP at all\r\n\r\n")


async def _hang(visit: Visit) -> None:
    await visit.read_request()
    await asyncio.sleep(30)


async def _drip(visit: Visit) -> None:
    await visit.read_request()
    await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while True:
        await visit.send(b" ")
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (_reset, "reset"),
        (_close, "protocol"),
        (_half, "protocol"),
        (_nonsense, "protocol"),
        (_hang, "timeout"),
        (_drip, "timeout"),
    ],
)
def test_trouble_after_the_first_byte_is_a_lost_answer_and_nothing_is_sent_again(
    script: Script, reason: str
) -> None:
    outcome, server = send(script, read_seconds=0.4)

    assert isinstance(outcome, AnswerLost)
    assert outcome.reason == reason
    assert server.posts == 1
    assert len(server.visits) == 1


def test_a_server_that_drips_is_cut_off_by_the_total_and_not_by_the_pause() -> None:
    started = time.monotonic()
    outcome, _ = send(_drip, read_seconds=0.4)

    assert isinstance(outcome, AnswerLost)
    assert 0.35 < time.monotonic() - started < 1.5


@pytest.mark.parametrize("status", [302, 307, 408, 409, 425, 429, 500, 502, 503, 504])
def test_no_status_is_followed_or_repeated(status: int) -> None:
    async def answer(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(status, b"x", location="/elsewhere", retry_after="0")

    outcome, server = send(answer)

    assert isinstance(outcome, HttpResponse)
    assert outcome.status == status
    assert server.posts == 1


def readings(*values: float) -> Callable[[], float]:
    """A clock that gives these readings and then the last one for ever."""
    left = list(values)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_a_sender_that_slept_through_its_lease_while_connecting_sends_no_byte() -> None:
    # Read when the deadline is made, before connecting, and before the first byte: it slept in between.
    outcome, server = send(accept, deadline=Deadline(5, clock=readings(0.0, 1.0, 100.0)))

    assert isinstance(outcome, NotSent)
    assert outcome.reason == "deadline_passed"
    assert len(server.visits) == 1  # the connection was made
    assert server.received == b""


def test_after_the_deadline_not_even_a_connection_is_made() -> None:
    outcome, server = send(accept, deadline=Deadline(5, clock=readings(0.0, 5.0)))

    assert isinstance(outcome, NotSent)
    assert server.visits == []


def test_a_deadline_counts_down_and_passes_exactly() -> None:
    clock = [0.0]
    deadline = Deadline(3, clock=lambda: clock[0])
    assert (deadline.remaining(), deadline.passed) == (3.0, False)
    clock[0] = 2.5
    assert (deadline.remaining(), deadline.passed) == (0.5, False)
    clock[0] = 3.0
    assert (deadline.remaining(), deadline.passed) == (0.0, True)


def test_an_answer_beyond_the_cap_is_cut_and_says_so() -> None:
    async def long(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(200, b"x" * 1001)

    outcome, _ = send(long, max_body_bytes=1000)
    assert isinstance(outcome, HttpResponse)
    assert (len(outcome.body), outcome.truncated) == (1000, True)


def test_a_compressed_answer_is_understood_and_a_bomb_is_cut() -> None:
    async def packed(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(200, gzip.compress(b"y" * 100_000), content_encoding="gzip")

    outcome, _ = send(packed, max_body_bytes=1000)
    assert isinstance(outcome, HttpResponse)
    assert (outcome.body, outcome.truncated) == (b"y" * 1000, True)


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    outcome, server = send(accept)
    assert isinstance(outcome, HttpResponse)
    assert server.posts == 1


def test_a_header_that_cannot_be_written_is_not_sent() -> None:
    async def run() -> tuple[NotSent, Server]:
        async with serving(accept) as server:
            request = HttpRequest("POST", server.url, {"authorization": "Key a\nb: c"}, BODY)
            with pytest.raises(NotSent) as raised:
                await send_once(request, deadline=Deadline(10))
            return raised.value, server

    error, server = asyncio.run(run())
    assert error.reason == "request_not_valid"
    assert server.received == b""


def test_the_key_is_not_shown_by_the_repr_of_a_request() -> None:
    assert "Key k" not in repr(post("http://127.0.0.1"))
