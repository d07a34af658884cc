"""What the tests of crashes share: a process that forks the struck ones, and the count at the end."""

from collections.abc import Iterator

import pytest

from tests.crash.harness import ForkServer
from tests.simulator_process import SimulatorProcess


@pytest.fixture
def server(simulator: SimulatorProcess) -> Iterator[ForkServer]:
    """Forks processes that work on the test's own database, files and provider."""
    with ForkServer() as running:
        yield running
