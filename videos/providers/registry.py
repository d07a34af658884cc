"""The providers of this installation, built from settings once per process."""

from collections.abc import Callable
from functools import cache
from types import MappingProxyType

from django.conf import settings

from videos.providers.base import Capabilities, Provider
from videos.providers.fal import FAL_CAPABILITIES, FalQueue
from videos.providers.fal_blind import BLIND_CAPABILITIES


class UnknownProvider(LookupError):
    """No adapter has this name: a task of a provider that was removed waits for a person."""


def provider_names() -> tuple[str, ...]:
    """The names of all adapters."""
    return tuple(_BUILDERS)


@cache
def get_provider(name: str) -> Provider:
    """The adapter of this name. Raises: UnknownProvider."""
    if name not in _BUILDERS:
        raise UnknownProvider(name)
    return _BUILDERS[name]()


def clear() -> None:
    """Forget the built adapters, after settings have changed (tests)."""
    get_provider.cache_clear()


def _fal(name: str, capabilities: Capabilities) -> Provider:
    return FalQueue(
        name=name,
        capabilities=capabilities,
        base_url=settings.FAL_BASE_URL,
        api_url=settings.FAL_API_URL,
        jwks_url=settings.FAL_JWKS_URL,
        key=settings.FAL_KEY,
        result_hosts=settings.RESULT_HOSTS,
    )


_BUILDERS: MappingProxyType[str, Callable[[], Provider]] = MappingProxyType(
    {
        "fal": lambda: _fal("fal", FAL_CAPABILITIES),
        "fal_blind": lambda: _fal("fal_blind", BLIND_CAPABILITIES),
    }
)
