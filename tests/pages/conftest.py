"""People who are signed in; after each test the books are audited."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests import makers
from tests.invariants_check import assert_invariants
from tests.makers import Owner
from tests.pages.reading import BACKEND


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """No page is about the strength of password hashes, and every test makes a person."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def sign_in(owner: Owner) -> Client:
    client = Client()
    client.force_login(owner.user, backend=BACKEND)
    return client


@pytest.fixture
def owner(db: None) -> Iterator[Owner]:
    """Somebody with 100 USDC."""
    yield makers.make_owner(balance="100")
    assert_invariants()


@pytest.fixture
def client(owner: Owner) -> Client:
    """The browser of `owner`."""
    return sign_in(owner)
