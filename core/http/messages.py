"""One HTTP request and one HTTP answer as plain values, and the ways in which an exchange can go wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class HttpRequest:
    """A request whose bytes are complete, so that its hash can be kept before it is sent.

    `headers` are hidden from `repr`, since they carry the key of the provider.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS, repr=False)
    body: bytes | None = None


@dataclass(frozen=True)
class HttpResponse:
    """An answer. Header names are in lower case; `truncated` says that the body was longer than the cap."""

    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    body: bytes = b""
    truncated: bool = False


class ExchangeFailed(Exception):
    """Base of the failures of one exchange. `reason` is a short machine word, fit for a record."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotSent(ExchangeFailed):
    """No byte of the request was written: DNS, refused, TLS, connect timeout, deadline passed before."""


class AnswerLost(ExchangeFailed):
    """Something went wrong after the first byte: nobody knows whether the request was executed."""


class ReadFailed(ExchangeFailed):
    """A read that may be repeated did not come to an answer."""


class DownloadRefused(ExchangeFailed):
    """The address, host, size or redirect is not allowed: asking again will not help."""


class DownloadFailed(ExchangeFailed):
    """The download broke off or was answered with an error `status` (None without one): may be retried."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
