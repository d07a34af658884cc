"""What the tests of the API share."""

from collections.abc import Iterator
from typing import Any

import pytest

from core import audit
from tests import makers
from tests.makers import Owner


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """A slow hash is the point of a password, and nothing that these tests ask about."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def invariants_hold_afterwards(db: None) -> Iterator[None]:
    """Whatever a request did, the rows it left fit together."""
    yield
    assert [finding for finding in audit.findings() if finding.violations] == []


@pytest.fixture
def owner(db: None) -> Owner:
    """A person with 100 units and a token."""
    return makers.make_owner()
