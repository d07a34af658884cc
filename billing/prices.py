"""Prices: pure arithmetic in whole micro-units; the only rounding is up, once, at the unit price."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Quote:
    """What an order costs today. `amount_micros` = `unit_price_micros` × `quantity`."""

    price_version_id: UUID
    unit: str
    unit_price_micros: int
    quantity: int

    @property
    def amount_micros(self) -> int:
        return self.unit_price_micros * self.quantity


def unit_price(*, provider_micros: int, markup: str) -> int:
    """The owner's price of one unit: the provider's × markup, up to the next micro, at least 1."""
    exact = Decimal(provider_micros) * Decimal(markup)
    return max(1, int(exact.to_integral_value(rounding=ROUND_CEILING)))


def settled_amount(*, unit_price_micros: int, quantity: int, used: Decimal | None) -> int:
    """What of a charge is kept when the provider states what it used, in the same units.

    Less than ordered: only that, up to the next micro, at least 1 (the video exists). More: never charged.
    """
    full = unit_price_micros * quantity
    if used is None or used < 0 or used >= quantity:
        return full
    kept = (Decimal(unit_price_micros) * used).to_integral_value(rounding=ROUND_CEILING)
    return max(1, min(full, int(kept)))
