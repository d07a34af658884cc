"""What every case shares: an owner, the provider, and the invariants afterwards."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.invariants_check import assert_invariants
from tests.makers import Owner, make_owner
from tests.product_process import ProductProcess

# What a killed worker held comes back within the test's patience; still longer than any submit may take.
SHORT_LEASES = {"LEASE_SECONDS": "14", "SUBMIT_CONNECT_SECONDS": "2", "SUBMIT_READ_SECONDS": "6"}


@pytest.fixture(autouse=True)
def invariants_hold_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every case that used the database: the audit, and the provider's own journal."""
    if request.node.get_closest_marker("django_db") is None:
        yield
        return
    request.getfixturevalue("db")  # set up before this fixture, so that it is still there afterwards
    simulator = request.getfixturevalue("simulator")
    yield
    assert_invariants(simulator)


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """No case is about the strength of password hashes, and every one makes an owner."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def owner(db: None) -> Owner:
    """An owner with 100 USDC."""
    return make_owner()


@pytest.fixture(scope="session")
def running_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProductProcess]:
    """The product as real processes with a provider of its own, for the cases that need a restart."""
    with ProductProcess(tmp_path_factory.mktemp("product"), env=SHORT_LEASES) as product:
        yield product


@pytest.fixture
def product(running_product: ProductProcess) -> Iterator[ProductProcess]:
    """The same, with all its processes running and its provider in good order; audited afterwards."""
    assert running_product.simulator is not None
    running_product.simulator.clear_faults()
    yield running_product
    running_product.start_missing()
    running_product.assert_invariants()


@pytest.fixture
def steady_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance in the middle: every jitter is none, so that pauses have exact values."""
    monkeypatch.setattr("random.random", lambda: 0.5)


@pytest.fixture
def reached_by_webhooks(live_server: Any, settings: Any) -> str:
    """A live server that the provider's call-backs reach; its address."""
    settings.PUBLIC_BASE_URL = live_server.url
    return str(live_server.url)
