"""The kinds of transfer and which accounts each may join. Pure; the table becomes a database constraint."""

from enum import StrEnum


class Leg(StrEnum):
    """One side of a transfer: a house account, or the owner named in the row."""

    OWNER = "owner"
    FUNDING = "funding"
    CLEARING = "clearing"
    REVENUE = "revenue"
    LOSS = "loss"
    PROVIDER_COST = "provider_cost"


class Kind(StrEnum):
    TOP_UP = "top_up"
    CHARGE = "charge"
    SETTLE = "settle"
    REFUND = "refund"
    GOODWILL = "goodwill"
    ADJUSTMENT = "adjustment"
    LOSS = "loss"


# kind → the (debit, credit) pairs it may have
LEGS: dict[Kind, tuple[tuple[Leg, Leg], ...]] = {
    Kind.TOP_UP: ((Leg.FUNDING, Leg.OWNER),),
    Kind.CHARGE: ((Leg.OWNER, Leg.CLEARING),),
    Kind.SETTLE: ((Leg.CLEARING, Leg.REVENUE),),
    Kind.REFUND: ((Leg.CLEARING, Leg.OWNER),),
    Kind.GOODWILL: ((Leg.REVENUE, Leg.OWNER),),
    Kind.ADJUSTMENT: ((Leg.FUNDING, Leg.OWNER), (Leg.OWNER, Leg.FUNDING)),
    Kind.LOSS: ((Leg.LOSS, Leg.PROVIDER_COST),),
}

# Kinds that speak of one charge, and must name it.
OF_A_CHARGE = (Kind.CHARGE, Kind.SETTLE, Kind.REFUND, Kind.GOODWILL)


class Outcome(StrEnum):
    """How a charge ended."""

    SETTLED = "settled"
    REFUNDED = "refunded"


class ChargeState(StrEnum):
    """What the API calls `charge.state`."""

    NOT_CHARGED = "not_charged"
    CHARGED = "charged"
    SETTLED = "settled"
    PARTIALLY_REFUNDED = "partially_refunded"
    REFUNDED = "refunded"


def charge_state(*, charged: int | None, outcome: str | None, returned: int) -> ChargeState:
    """The state of a task's money from its rows; `charged` None means that no charge exists. Micro-units."""
    if charged is None:
        return ChargeState.NOT_CHARGED
    if outcome is None:
        return ChargeState.CHARGED
    if returned == 0:
        return ChargeState.SETTLED
    return ChargeState.REFUNDED if returned == charged else ChargeState.PARTIALLY_REFUNDED
