"""Amounts are whole micros inside and exact text outside (C28)."""

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.money import (
    MAX_MICROS,
    InvalidAmount,
    format_amount,
    format_money,
    parse_amount,
    round_up_micros,
    to_amount,
)

MICROS = st.integers(min_value=-MAX_MICROS, max_value=MAX_MICROS)


@given(MICROS)
def test_what_the_api_writes_is_read_back_as_the_same_micros(micros: int) -> None:
    assert parse_amount(to_amount(micros)) == micros


@given(MICROS)
def test_the_api_writes_exactly_six_places_of_the_true_value(micros: int) -> None:
    text = to_amount(micros)
    assert len(text.rsplit(".", 1)[1]) == 6
    assert int(text.replace(".", "")) == micros


@given(MICROS)
def test_text_for_people_has_two_to_six_decimals_and_loses_nothing(micros: int) -> None:
    text = format_amount(micros)
    decimals = text.rsplit(".", 1)[1]
    assert 2 <= len(decimals) <= 6
    assert len(decimals) == 2 or not decimals.endswith("0")
    assert parse_amount(text.replace(",", "")) == micros


@given(MICROS)
def test_a_decimal_of_the_same_value_is_read_as_the_same_micros(micros: int) -> None:
    assert parse_amount(Decimal(to_amount(micros))) == micros


@given(st.decimals(min_value=0, max_value=1_000_000_000, allow_nan=False, places=18))
def test_rounding_goes_up_to_the_next_micro_and_no_further(amount: Decimal) -> None:
    micros = round_up_micros(amount)
    with localcontext() as context:
        context.prec = 60
        assert 0 <= Decimal(micros) - amount * 1_000_000 < 1


@pytest.mark.parametrize(
    ("micros", "amount", "shown"),
    [
        (0, "0.000000", "0.00"),
        (1, "0.000001", "0.000001"),
        (-1, "-0.000001", "-0.000001"),
        (400_000, "0.400000", "0.40"),
        (-400_000, "-0.400000", "-0.40"),
        (123_400, "0.123400", "0.1234"),
        (999_999, "0.999999", "0.999999"),
        (1_000_000, "1.000000", "1.00"),
        (-1_500_000, "-1.500000", "-1.50"),
        (1_234_567_890_000, "1234567.890000", "1,234,567.89"),
    ],
)
def test_amounts_are_written_like_this(micros: int, amount: str, shown: str) -> None:
    assert to_amount(micros) == amount
    assert format_amount(micros) == shown


def test_money_keeps_its_currency_on_the_same_line() -> None:
    assert format_money(400_000, "USDC") == "0.40\u00a0USDC"


@pytest.mark.parametrize("price", ["0.07", "0.1"])
def test_ten_thousand_prices_with_a_third_returned_add_up_exactly(price: str) -> None:
    """C28."""
    micros = parse_amount(price)
    charged = sum(micros for _ in range(10_000))
    returned = sum(micros for task in range(10_000) if task % 3 == 0)
    expected = {
        "0.07": ("700.000000", "233.380000", "466.62"),
        "0.1": ("1000.000000", "333.400000", "666.60"),
    }
    assert (to_amount(charged), to_amount(returned), format_amount(charged - returned)) == expected[price]


def test_a_sum_that_floats_get_wrong_is_written_right() -> None:
    """C28: 0.1 + 0.2."""
    assert to_amount(parse_amount("0.1") + parse_amount("0.2")) == "0.300000"


@pytest.mark.parametrize(
    ("amount", "micros"),
    [("0.07", 70_000), ("12", 12_000_000), ("-0.5", -500_000), ("007", 7_000_000), (3, 3_000_000), (0, 0)],
)
def test_plain_decimal_text_and_whole_numbers_are_read(amount: object, micros: int) -> None:
    assert parse_amount(amount) == micros


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        (0.4, "not_an_amount"),
        (float("nan"), "not_an_amount"),
        (True, "not_an_amount"),
        (None, "not_an_amount"),
        (b"1", "not_an_amount"),
        (["1"], "not_an_amount"),
        ("", "not_an_amount"),
        ("1e3", "not_an_amount"),
        ("1E-7", "not_an_amount"),
        ("NaN", "not_an_amount"),
        ("Infinity", "not_an_amount"),
        ("+1", "not_an_amount"),
        ("--1", "not_an_amount"),
        (" 1", "not_an_amount"),
        ("1\n", "not_an_amount"),
        ("1,000.00", "not_an_amount"),
        ("1_000", "not_an_amount"),
        (".5", "not_an_amount"),
        ("5.", "not_an_amount"),
        ("0x10", "not_an_amount"),
        ("٣", "not_an_amount"),
        ("１", "not_an_amount"),
        ("0.0000001", "too_many_places"),
        ("0.4000000", "too_many_places"),
        (Decimal("0.0000001"), "too_many_places"),
        (Decimal("1E-999999"), "too_many_places"),
        (Decimal("NaN"), "not_finite"),
        (Decimal("sNaN"), "not_finite"),
        (Decimal("-Infinity"), "not_finite"),
        (Decimal("1E+999999"), "too_large"),
        ("9223372036854.775808", "too_large"),
        (9_223_372_036_855, "too_large"),
    ],
)
def test_what_is_no_exact_amount_is_refused_with_its_reason(amount: object, reason: str) -> None:
    with pytest.raises(InvalidAmount) as refusal:
        parse_amount(amount)
    assert refusal.value.reason == reason


def test_the_largest_amount_of_a_column_is_read_and_written() -> None:
    assert parse_amount("9223372036854.775807") == MAX_MICROS
    assert to_amount(MAX_MICROS) == "9223372036854.775807"


@pytest.mark.parametrize(
    ("amount", "micros"),
    [
        ("0", 0),
        ("0.4", 400_000),
        ("0.0000000000000000001", 1),
        ("0.1000000000000000000000000000000000001", 100_001),
        ("0.999999000", 999_999),
        ("12345678.0000011", 12_345_678_000_002),
    ],
)
def test_a_price_is_rounded_up_even_beyond_the_precision_of_the_decimal_context(
    amount: str, micros: int
) -> None:
    assert round_up_micros(Decimal(amount)) == micros


@pytest.mark.parametrize(
    ("amount", "reason"), [("-0.1", "negative"), ("NaN", "not_finite"), ("1E+30", "too_large")]
)
def test_a_price_that_cannot_be_is_refused(amount: str, reason: str) -> None:
    with pytest.raises(InvalidAmount) as refusal:
        round_up_micros(Decimal(amount))
    assert refusal.value.reason == reason
