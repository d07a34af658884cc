"""The fal adapter and the outgoing HTTP against the simulator: order to video, lost answers."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from core.http import AnswerLost, Deadline, ReadClient, download, send_once
from tests.domain.loopback import Visit, serving
from tests.domain.provider_makers import fal, order
from tests.simulator_process import SimulatorProcess
from videos.providers.base import (
    Accepted,
    AlreadyCompleted,
    Cancelled,
    CancelNotFound,
    CancelRequested,
    Job,
    NotFound,
    Order,
    ProviderFailed,
    Ready,
    Rejected,
    Succeeded,
    Throttled,
    WebhookRefused,
)
from videos.providers.fal import FalQueue

ENDPOINT = "fal-ai/veo3.1"


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    process = SimulatorProcess(tmp_path_factory.mktemp("simulator"), instant=True)
    process.start()
    yield process
    process.stop()


def adapter(simulator: SimulatorProcess) -> FalQueue:
    return fal(
        base_url=simulator.url,
        api_url=simulator.url,
        jwks_url=f"{simulator.url}/.well-known/jwks.json",
        result_hosts=[f"127.0.0.1:{simulator.port}"],
    )


async def submit(provider: FalQueue, placed: Order) -> object:
    return provider.read_submit(await send_once(provider.submit(placed).request, deadline=Deadline(30)))


async def accepted(provider: FalQueue, placed: Order) -> Job:
    answer = await submit(provider, placed)
    assert isinstance(answer, Accepted)
    assert set(answer.handles) == {"status_url", "response_url", "cancel_url"}
    return Job(upstream_id=answer.upstream_id, endpoint=ENDPOINT, handles=answer.handles)


Reading = TypeVar("Reading")


async def until(read: Callable[[], Awaitable[object]], wanted: type[Reading]) -> Reading:
    """Read until the answer is of the wanted kind, for five seconds at most."""
    reading = await read()
    for _ in range(100):
        if isinstance(reading, wanted):
            break
        await asyncio.sleep(0.05)
        reading = await read()
    assert isinstance(reading, wanted)
    return reading


def reader(
    client: ReadClient, provider: FalQueue, job: Job, part: str = "status"
) -> Callable[[], Awaitable[object]]:
    """Reads status or result of a job, again and again."""
    ask, read = getattr(provider, part), getattr(provider, f"read_{part}")

    async def once() -> object:
        return read(await client.get(ask(job)))

    return once


def test_an_order_becomes_a_video_that_is_fetched_and_found_in_the_list(simulator: SimulatorProcess) -> None:
    provider, placed = adapter(simulator), order(key="whole-way")
    started = datetime.now(UTC)

    async def run() -> None:
        async with ReadClient() as client:
            job = await accepted(provider, placed)
            assert await until(reader(client, provider, job), Succeeded) == Succeeded()
            ready = await until(reader(client, provider, job, "result"), Ready)
            assert ready.usage is not None
            assert ready.usage.units == 8

            sink = io.BytesIO()
            got = await download(
                ready.url,
                sink=sink,
                allowed_origins=provider.result_origins,
                max_bytes=10_000_000,
                read_seconds=5,
                total_seconds=20,
            )
            assert (got.content_type, got.size) == ("video/mp4", len(sink.getvalue()))

            span = {"since": started - timedelta(minutes=1), "until": started + timedelta(minutes=5)}
            page = provider.read_lookup(await client.get(provider.lookup(endpoint=ENDPOINT, **span)))
            assert [hit.upstream_id for hit in page.found if provider.recognises(placed, hit)] == [
                job.upstream_id
            ]
            assert provider.read_cancel(await client.get(provider.cancel(job))) == AlreadyCompleted()

    asyncio.run(run())


def test_a_job_bound_by_its_id_alone_is_read_at_the_documented_addresses(simulator: SimulatorProcess) -> None:
    provider = adapter(simulator)

    async def run() -> None:
        async with ReadClient() as client:
            job = await accepted(provider, order(key="bound"))
            bound = Job(upstream_id=job.upstream_id, endpoint=ENDPOINT)
            await until(reader(client, provider, bound), Succeeded)
            await until(reader(client, provider, bound, "result"), Ready)
            unknown = Job(upstream_id="00000000-0000-0000-0000-000000000000", endpoint=ENDPOINT)
            assert provider.read_status(await client.get(provider.status(unknown))) == NotFound()
            assert provider.read_cancel(await client.get(provider.cancel(unknown))) == CancelNotFound()

    asyncio.run(run())


@pytest.mark.parametrize("cut", ["reset", "close", "half"])
def test_an_answer_lost_after_acceptance_is_one_job_that_the_list_gives_back_c01(
    simulator: SimulatorProcess, cut: str
) -> None:
    provider = adapter(simulator)
    placed = order(key=f"lost-{cut}", prompt=f"a heron [sim: drop_after_accept={cut}]")
    marker = provider.submit(placed).marker

    async def run() -> list[str]:
        with pytest.raises(AnswerLost):
            await submit(provider, placed)
        now = datetime.now(UTC)
        span = {"since": now - timedelta(minutes=5), "until": now + timedelta(minutes=5)}
        async with ReadClient() as client:
            for _ in range(100):
                page = provider.read_lookup(await client.get(provider.lookup(endpoint=ENDPOINT, **span)))
                found = [hit.upstream_id for hit in page.found if provider.recognises(placed, hit)]
                if found:
                    return found
                await asyncio.sleep(0.05)
        return []

    found = asyncio.run(run())
    assert simulator.count(marker=marker) == 1
    assert found == [job["request_id"] for job in simulator.jobs(marker=marker)]


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ("refuse=429; retry_after=7", Throttled(retry_after_seconds=7)),
        ("refuse=422; detail=nope", Rejected(code="input_invalid", detail="nope")),
    ],
)
def test_a_refusal_is_no_job(simulator: SimulatorProcess, directive: str, expected: object) -> None:
    before = simulator.count()
    placed = order(key=directive, prompt=f"a heron [sim: {directive}]")
    assert asyncio.run(submit(adapter(simulator), placed)) == expected
    assert simulator.count() == before


@pytest.mark.parametrize("directive", ["shape=nested", "code=201", "code=202"])
def test_creation_is_not_always_a_plain_200_c20(simulator: SimulatorProcess, directive: str) -> None:
    placed = order(key=directive, prompt=f"a heron [sim: {directive}]")
    job = asyncio.run(accepted(adapter(simulator), placed))
    assert job.upstream_id in [entry["request_id"] for entry in simulator.jobs()]


def test_a_failure_is_read_from_the_status_and_its_text_is_clean_c68(simulator: SimulatorProcess) -> None:
    provider = adapter(simulator)

    async def run() -> ProviderFailed:
        async with ReadClient() as client:
            prompt = 'a heron [sim: fail="bro\\u0000ken"; error_type=runner_server_error]'
            job = await accepted(provider, order(key="fails", prompt=prompt))
            return await until(reader(client, provider, job), ProviderFailed)

    failed = asyncio.run(run())
    assert (failed.code, failed.reason, failed.retryable) == ("provider_failed", "runner_server_error", True)
    assert "\x00" not in failed.detail
    assert failed.detail.startswith("bro")


@pytest.mark.parametrize(
    ("directive", "code"), [("billed", "output_withheld"), ("billed=no", "prompt_refused")]
)
def test_a_refused_output_says_whether_it_was_billed_c72(
    simulator: SimulatorProcess, directive: str, code: str
) -> None:
    provider = adapter(simulator)

    async def run() -> ProviderFailed:
        async with ReadClient() as client:
            placed = order(key=directive, prompt=f"a heron [sim: refused_output; {directive}]")
            job = await accepted(provider, placed)
            await until(reader(client, provider, job), Succeeded)  # the result tells, not the status
            return await until(reader(client, provider, job, "result"), ProviderFailed)

    failed = asyncio.run(run())
    assert failed.code == code
    assert failed.charged is not None
    assert failed.charged.is_above_zero is (directive == "billed")


def test_a_waiting_job_can_be_cancelled(simulator: SimulatorProcess) -> None:
    provider = adapter(simulator)

    async def run() -> None:
        async with ReadClient() as client:
            placed = order(key="cancelled", prompt="a heron [sim: queue_forever]")
            job = await accepted(provider, placed)
            assert provider.read_cancel(await client.get(provider.cancel(job))) == CancelRequested()
            await until(reader(client, provider, job), Cancelled)

    asyncio.run(run())


def test_a_call_back_verifies_against_the_published_keys(simulator: SimulatorProcess) -> None:
    provider = adapter(simulator)
    calls: list[tuple[dict[str, str], bytes]] = []

    async def hook(visit: Visit) -> None:
        head, _, body = (await visit.read_request()).partition(b"\r\n\r\n")
        pairs = (line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        calls.append(({name: value for name, value in pairs}, body))
        await visit.answer(200)

    async def run() -> str:
        async with serving(hook) as server:
            job = await accepted(provider, order(key="hooked", webhook_url=f"{server.url}/hooks/fal/t0ken"))
            for _ in range(100):
                if calls:
                    break
                await asyncio.sleep(0.05)
            return job.upstream_id

    upstream_id = asyncio.run(run())
    headers, body = calls[0]
    provider.verify_webhook(headers, body, datetime.now(UTC))
    assert provider.read_webhook(body).upstream_id == upstream_id
    with pytest.raises(WebhookRefused) as raised:
        provider.verify_webhook(headers, body + b" ", datetime.now(UTC))
    assert (raised.value.status, raised.value.reason) == (401, "signature_wrong")
