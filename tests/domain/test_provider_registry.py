"""Adapters are built from settings, once, and an unknown name is an error and not a default."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test.utils import override_settings

from videos.providers.registry import UnknownProvider, clear, get_provider, provider_names

ADDRESSES = {
    "FAL_BASE_URL": "http://127.0.0.1:8900",
    "FAL_API_URL": "http://127.0.0.1:8900",
    "FAL_JWKS_URL": "http://127.0.0.1:8900/.well-known/jwks.json",
    "FAL_KEY": "key-id:secret-half",
    "RESULT_HOSTS": ["127.0.0.1:8900"],
}


@pytest.fixture(autouse=True)
def configured() -> Iterator[None]:
    """Settings of a simulator on loopback, and no adapter left over from another test."""
    if not settings.configured:
        settings.configure()
    with override_settings(**ADDRESSES):
        clear()
        yield
    clear()


def test_the_two_configurations_share_the_wire_and_differ_in_contract() -> None:
    assert provider_names() == ("fal", "fal_blind")
    fal, blind = get_provider("fal"), get_provider("fal_blind")
    assert (fal.name, blind.name) == ("fal", "fal_blind")
    assert fal.account == blind.account
    assert fal.capabilities != blind.capabilities
    assert fal.result_origins.named == frozenset({("127.0.0.1", 8900)})


def test_an_adapter_is_built_once_until_it_is_cleared() -> None:
    first = get_provider("fal")
    assert get_provider("fal") is first
    with override_settings(FAL_KEY="another-key:another-half"):
        assert get_provider("fal") is first
        clear()
        assert get_provider("fal").account != first.account


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(UnknownProvider):
        get_provider("nobody")
