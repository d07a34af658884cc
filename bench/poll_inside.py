"""A polling worker's rounds, and a bare loop over the same addresses; runs inside the product."""

import asyncio
import time
from itertools import cycle

import httpcore2

from bench.owners import BALANCE
from core.http import HttpRequest
from tests.makers import make_due, make_owner, submit
from videos.engine import dispatch, polling
from videos.models import Attempt
from videos.providers.registry import get_provider
from videos.states import Outcome

PROVIDER = "fal"


def start_jobs(*, count: int) -> int:
    """Jobs that run for ever at the provider. Raises: RuntimeError when not all were taken."""
    owner = make_owner(balance=BALANCE)
    for _ in range(count):
        submit(owner, prompt="a cat on a roof [sim: run_forever]")
    dispatch.dispatch_due()
    accepted = Attempt.objects.filter(outcome=Outcome.ACCEPTED).count()
    if accepted != count:
        raise RuntimeError(f"{accepted} of {count} jobs were taken")
    return accepted


def poll(*, seconds: float) -> float:
    """Reads per second of a worker that always finds work. Letting the pauses pass is not counted."""
    read, spent = 0, 0.0
    while spent < seconds:
        make_due()
        began = time.perf_counter()
        read += polling.poll_due()
        spent += time.perf_counter() - began
    return read / spent


def read_bare(*, seconds: float) -> float:
    """Reads per second of loops that do nothing but ask, each with a connection of its own.

    As many as a worker has connections: with more, the library's pool, which looks at all of them for each
    request, would slow this side down and flatter the other.
    """
    provider = get_provider(PROVIDER)
    attempts = Attempt.objects.filter(outcome=Outcome.ACCEPTED)
    requests = [provider.status(polling.job_of(attempt)) for attempt in attempts]
    return asyncio.run(_read_all(requests, seconds))


async def _read_all(requests: list[HttpRequest], seconds: float) -> float:
    waiting = cycle(requests)
    began = time.perf_counter()
    read = 0
    async with httpcore2.AsyncConnectionPool(max_connections=polling.READ_CONNECTIONS) as pool:

        async def ask() -> None:
            nonlocal read
            while time.perf_counter() - began < seconds:
                request = next(waiting)
                answer = await pool.request(
                    request.method, request.url, headers=list(request.headers.items())
                )
                if answer.status != 202 or not answer.content:
                    raise RuntimeError(f"the provider answered {answer.status}")
                read += 1

        await asyncio.gather(*(ask() for _ in range(polling.READ_CONNECTIONS)))
    return read / (time.perf_counter() - began)
