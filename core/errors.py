"""Errors of the domain: a stable code, the values of its sentence, and the HTTP status it is told with.

Operations raise them; the API, the pages, the admin and the commands translate them once each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Allowed:
    """What a field or a person may have: a kind of the message catalogue's limits, and its figures."""

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)


class DomainError(Exception):
    """Something the domain refuses. `code` is stable and in the message catalogue; `params` fill its
    sentence.
    """

    code: ClassVar[str]
    status: ClassVar[int]

    def __init__(self, **params: Any) -> None:
        super().__init__(self.code, params)
        self.params = params


class Invalid(DomainError):
    """A field of the request is not acceptable; nothing was changed. `field`; `limit`: a kind or
    `Allowed`.
    """

    code = "invalid"
    status = 400


class TooLarge(DomainError):
    """`size` and `limit` in bytes."""

    code = "too_large"
    status = 413


class Unavailable(DomainError):
    """The database cannot take requests now, and this one saved nothing."""

    code = "unavailable"
    status = 503


class OutcomeNotKnown(DomainError):
    """The connection broke while saving; asking again with the same id is safe."""

    code = "outcome_unknown"
    status = 503
