"""One world for a whole module: each test works inside a savepoint of it and undoes what it did."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from tests.invariants.world import World, build_world
from tests.simulator_process import SimulatorProcess

from videos.providers import registry


@pytest.fixture(scope="module")
def world_of_module(
    django_db_setup: None,
    django_db_blocker: Any,
    running_simulator: SimulatorProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    url = running_simulator.url
    folder = tmp_path_factory.mktemp("world")
    storage = {"BACKEND": "files.storage.DurableFolder", "OPTIONS": {"location": str(folder)}}
    with django_db_blocker.unblock():
        block = transaction.atomic()
        block._from_testcase = True  # type: ignore[attr-defined]  # as django.test.TestCase marks its own
        block.__enter__()
        try:
            running_simulator.reset()
            with override_settings(
                FAL_BASE_URL=url,
                FAL_API_URL=url,
                FAL_JWKS_URL=f"{url}/.well-known/jwks.json",
                FAL_KEY="test-key:test-secret",
                RESULT_HOSTS=[url.removeprefix("http://")],
                STORAGES={"default": storage},
            ):
                registry.clear()
                built = build_world()
            registry.clear()
            yield built
        finally:
            connection.needs_rollback = True
            block.__exit__(None, None, None)


@pytest.fixture
def world(world_of_module: World) -> Iterator[World]:
    """The world, with everything that the test does undone afterwards."""
    connection.check_constraints()  # what waits for the commit would keep triggers from being dropped
    savepoint = transaction.savepoint()
    yield world_of_module
    transaction.savepoint_rollback(savepoint)
