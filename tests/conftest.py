"""What every test shares: translations, one simulator, and a database that is emptied by its one back
door.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from core.locale_files import compile_catalogues
from tests.simulator_process import SimulatorProcess

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    compile_catalogues(ROOT / "locale")


@pytest.fixture(scope="session")
def running_simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    process = SimulatorProcess(tmp_path_factory.mktemp("simulator"), instant=True).start()
    yield process
    process.stop()


@pytest.fixture
def simulator(running_simulator: SimulatorProcess, settings: Any) -> Iterator[SimulatorProcess]:
    """A provider with an empty journal and no faults, which the product's settings point to."""
    from videos.providers import registry

    running_simulator.reset()
    settings.FAL_BASE_URL = running_simulator.url
    settings.FAL_API_URL = running_simulator.url
    settings.FAL_JWKS_URL = f"{running_simulator.url}/.well-known/jwks.json"
    settings.FAL_KEY = "test-key:test-secret"
    settings.RESULT_HOSTS = [running_simulator.url.removeprefix("http://")]
    registry.clear()
    yield running_simulator
    registry.clear()


@pytest.fixture(autouse=True)
def storage_of_its_own(tmp_path: Path, settings: Any) -> None:
    """Files of a test go to the test's own folder."""
    settings.DATA_DIR = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "files.storage.DurableFolder",
            "OPTIONS": {"location": str(tmp_path / "files")},
        },
    }


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """A real password hash takes half a second by design; no test is about it."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def default_language() -> None:
    """A request leaves its language active in its thread; no test speaks that of another."""
    from django.utils import translation

    translation.deactivate()


@pytest.fixture(autouse=True)
def fresh_cache() -> None:
    """Rate limits of one test do not reach the next."""
    from django.core.cache import cache

    cache.clear()


IS_POSTGRESQL = settings.DATABASES["default"]["ENGINE"].endswith("postgresql")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("postgresql") and not IS_POSTGRESQL:
            item.add_marker(pytest.mark.skip(reason="needs DATABASE_URL to name a PostgreSQL database"))
        if item.get_closest_marker("redis") and not settings.BROKER_URL.startswith("redis"):
            item.add_marker(pytest.mark.skip(reason="needs BROKER_URL to name a Redis"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many crash points and interleavings there were, also where several processes run the tests."""
    from tests.concurrency import interleavings_played
    from tests.crash import tally

    tally.summarise(terminalreporter)
    interleavings_played.summarise(terminalreporter)
