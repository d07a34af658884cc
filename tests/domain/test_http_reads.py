"""Repeatable reads: bounded in time and size, never retried, never a POST."""

import asyncio
import threading
import time

import pytest

from core.http import HttpRequest, HttpResponse, ReadClient, ReadFailed, get_blocking
from tests.domain.loopback import Script, Server, Visit, serving, unused_port


def get(script: Script, *, seconds: float = 5.0, cap: int = 1000) -> tuple[HttpResponse | ReadFailed, Server]:
    async def run() -> tuple[HttpResponse | ReadFailed, Server]:
        async with serving(script) as server, ReadClient(total_seconds=seconds, max_body_bytes=cap) as client:
            try:
                return await client.get(HttpRequest("GET", server.url)), server
            except ReadFailed as error:
                return error, server

    return asyncio.run(run())


async def _reset(visit: Visit) -> None:
    await visit.read_request()
    visit.reset()


async def _half(visit: Visit) -> None:
    await visit.read_request()
    await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")


async def _drip(visit: Visit) -> None:
    await visit.read_request()
    await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while True:
        await visit.send(b" ")
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(("script", "reason"), [(_reset, "reset"), (_half, "protocol"), (_drip, "timeout")])
def test_transport_trouble_is_a_failed_read(script: Script, reason: str) -> None:
    outcome, server = get(script, seconds=0.4)
    assert isinstance(outcome, ReadFailed)
    assert outcome.reason == reason
    assert len(server.visits) == 1


def test_a_refused_connection_is_a_failed_read() -> None:
    async def run() -> None:
        async with ReadClient() as client:
            await client.get(HttpRequest("GET", f"http://127.0.0.1:{unused_port()}"))

    with pytest.raises(ReadFailed) as raised:
        asyncio.run(run())
    assert raised.value.reason == "refused"


def test_connections_are_reused_and_hanging_ones_hold_up_nobody_else() -> None:
    async def twice(visit: Visit) -> None:
        request = await visit.read_request()
        if b"/hang" in request:
            await asyncio.sleep(30)
        await visit.answer(200, b"1", connection="keep-alive")
        visit.received.clear()
        await visit.read_request()
        await visit.answer(200, b"2", connection="keep-alive")

    async def run() -> tuple[list[bytes], int, float]:
        async with serving(twice) as server, ReadClient(total_seconds=1.0) as client:
            hanging = asyncio.create_task(client.get(HttpRequest("GET", f"{server.url}/hang")))
            await asyncio.sleep(0.05)
            started = time.monotonic()
            bodies = [(await client.get(HttpRequest("GET", server.url))).body for _ in range(2)]
            took = time.monotonic() - started
            with pytest.raises(ReadFailed):
                await hanging
            return bodies, len(server.visits), took

    bodies, visits, took = asyncio.run(run())
    assert bodies == [b"1", b"2"]
    assert visits == 2  # one that hangs, one that was used twice
    assert took < 0.5


def test_a_post_cannot_be_sent_as_a_read() -> None:
    async def run() -> int:
        async def answer(visit: Visit) -> None:
            await visit.read_request()
            await visit.answer(200)

        async with serving(answer) as server, ReadClient() as client:
            with pytest.raises(ValueError, match="send_once"):
                await client.get(HttpRequest("POST", server.url, {}, b"{}"))
            return len(server.visits)

    assert asyncio.run(run()) == 0


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_read_or_a_cancellation_comes_back_as_it_was(method: str) -> None:
    async def answer(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(202, b'{"status":"CANCELLATION_REQUESTED"}')

    async def run() -> HttpResponse:
        async with serving(answer) as server, ReadClient() as client:
            return await client.get(HttpRequest(method, server.url, {}, b"" if method == "PUT" else None))

    response = asyncio.run(run())
    assert (response.status, response.body) == (202, b'{"status":"CANCELLATION_REQUESTED"}')


def blocking(script: Script, **limits: float) -> HttpResponse | ReadFailed:
    """Call the blocking read from another thread, as a view would."""
    outcome: list[HttpResponse | ReadFailed] = []

    def call(url: str) -> None:
        try:
            outcome.append(get_blocking(HttpRequest("GET", url), **limits))  # type: ignore[arg-type]
        except ReadFailed as error:
            outcome.append(error)

    async def run() -> None:
        async with serving(script) as server:
            thread = threading.Thread(target=call, args=(server.url,))
            thread.start()
            await asyncio.to_thread(thread.join, 10)

    asyncio.run(run())
    return outcome[0]


def test_a_blocking_read_gives_the_answer() -> None:
    async def answer(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(200, b'{"keys":[]}')

    response = blocking(answer)
    assert isinstance(response, HttpResponse)
    assert (response.status, response.body) == (200, b'{"keys":[]}')


def test_a_blocking_read_is_bounded_in_time_and_size() -> None:
    async def long(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(200, b"x" * 5000)

    dripping = blocking(_drip, total_seconds=0.3)
    assert isinstance(dripping, ReadFailed)
    assert dripping.reason == "timeout"
    too_large = blocking(long, max_body_bytes=4999)
    assert isinstance(too_large, ReadFailed)
    assert too_large.reason == "too_large"
