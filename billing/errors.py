"""What billing refuses."""

from core.errors import DomainError


class InsufficientBalance(DomainError):
    """`price` and `balance` in micro-units. Nothing was charged."""

    code = "insufficient_balance"
    status = 402


class PriceChanged(DomainError):
    """`old` (what the client would pay) and `new` in micro-units. Nothing was charged."""

    code = "price_changed"
    status = 409


class LimitReached(DomainError):
    """`limit`: what the limit is. Nothing was charged."""

    code = "limit_reached"
    status = 409


class ReferenceReused(DomainError):
    """A transfer of this kind and reference exists with other content; nothing was changed."""

    code = "reference_reused"
    status = 409


class NotResolvable(DomainError):
    """The charge is resolved already, or the amounts do not add up; nothing was changed."""

    code = "not_resolvable"
    status = 409


class GoodwillStale(DomainError):
    """What was returned has changed since the form was shown; nothing was changed."""

    code = "goodwill_stale"
    status = 409
