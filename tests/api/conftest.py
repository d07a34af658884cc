"""What the tests of the API share."""

from typing import Any

import pytest

from tests import makers
from tests.makers import Owner


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """A slow hash is the point of a password, and nothing that these tests ask about."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def owner(db: None) -> Owner:
    """A person with 100 units and a token."""
    return makers.make_owner()
