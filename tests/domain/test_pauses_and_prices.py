"""Pure arithmetic of time and money."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.prices import settled_amount, unit_price
from videos.engine.pauses import (
    JITTER,
    LONGEST_PAUSE_SECONDS,
    LONGEST_TOLD_SECONDS,
    next_read_in,
    pause_after,
)


def middle() -> float:
    return 0.5


def test_pauses_double_up_to_a_minute() -> None:
    pauses = [pause_after(tries=tries, told_seconds=None, chance=middle) for tries in range(9)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_what_the_provider_told_is_the_least_and_no_outage_is_believed_for_ever() -> None:
    assert pause_after(tries=0, told_seconds=30, chance=middle) == 30
    assert pause_after(tries=8, told_seconds=1, chance=middle) == LONGEST_PAUSE_SECONDS
    assert pause_after(tries=0, told_seconds=10**9, chance=middle) == LONGEST_TOLD_SECONDS


@given(tries=st.integers(0, 10**6), chance=st.floats(0, 1))
def test_chance_moves_a_pause_by_a_fifth_at_most(tries: int, chance: float) -> None:
    steady = pause_after(tries=tries, told_seconds=None, chance=middle)
    moved = pause_after(tries=tries, told_seconds=None, chance=lambda: chance)
    assert steady * (1 - JITTER) - 1e-9 <= moved <= steady * (1 + JITTER) + 1e-9


def test_a_running_job_is_read_often_while_young_and_every_quarter_minute_when_old() -> None:
    def after(age: float) -> float:
        return next_read_in(age_seconds=age, first=2, slowest=15, chance=middle)

    assert [after(age) for age in (0, 16, 40, 120, 3600)] == [2, 2, 5, 15, 15]


@pytest.mark.parametrize(
    ("provider_micros", "markup", "price"),
    [(400_000, "1.3", 520_000), (1, "1.3", 2), (0, "1.3", 1), (333_333, "1.1", 366_667), (100, "1", 100)],
)
def test_a_unit_price_is_rounded_up_once_and_is_at_least_a_micro(
    provider_micros: int, markup: str, price: int
) -> None:
    assert unit_price(provider_micros=provider_micros, markup=markup) == price


@pytest.mark.parametrize(
    ("used", "kept"),
    [
        (None, 4_160_000),
        (Decimal(8), 4_160_000),
        (Decimal(9), 4_160_000),  # more is never charged
        (Decimal(6), 3_120_000),
        (Decimal("0.0000001"), 1),  # the video exists
        (Decimal(0), 1),
        (Decimal(-1), 4_160_000),  # nonsense returns nothing
    ],
)
def test_what_was_not_used_is_not_kept(used: Decimal | None, kept: int) -> None:
    assert settled_amount(unit_price_micros=520_000, quantity=8, used=used) == kept
