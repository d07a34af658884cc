"""The stage on which interleavings are played, and their count at the end of a run."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.concurrency import interleaving
from tests.concurrency.pairs import POSTS
from tests.simulator_process import SimulatorProcess


@pytest.fixture
def stage(transactional_db: None) -> Iterator[interleaving.Stage]:
    with interleaving.stage() as made:
        yield made


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch, simulator: SimulatorProcess) -> SimulatorProcess:
    """Exchanges with the provider are steps; orders go to the simulator, and every job is done at once."""
    from videos.engine import dispatch, polling
    from videos.providers.base import Succeeded

    really_send = dispatch.send_once

    async def send_in_one_step(request: Any, **limits: Any) -> Any:
        interleaving.exchange("POST")
        POSTS.append(request.url.rpartition("%2F")[2])
        return await really_send(request, **limits)

    async def read_in_one_step(*_: Any) -> Succeeded:
        interleaving.exchange("GET")
        return Succeeded()

    monkeypatch.setattr(dispatch, "send_once", send_in_one_step)
    monkeypatch.setattr(polling, "read_status", read_in_one_step)
    return simulator
