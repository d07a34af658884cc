"""Money as whole micro-units of one currency: reading, writing and rounding, without floats.

One unit of the currency is 1,000,000 micros. Every stored and computed amount is an `int` of micros; decimal
strings exist only at the edges (API, command line, bills), and text for people only on pages and in messages.
"""

import re
from decimal import Decimal

MICROS_PER_UNIT = 1_000_000
DECIMAL_PLACES = 6  # as many as MICROS_PER_UNIT has zeros
SHOWN_PLACES = 2  # people expect at least cents
MAX_MICROS = 2**63 - 1  # what a signed 64-bit column of either database can hold
MAX_DECIMAL_PLACES_READ = 100  # far beyond any real price; bounds the work a hostile Decimal can cause
NO_BREAK_SPACE = "\u00a0"  # keeps an amount and its currency on one line

# ASCII digits, as `\d` takes those of other scripts too. No "+", no exponent, no grouping, no ".5" or "5.".
_DECIMAL_TEXT = re.compile(r"(-?)([0-9]{1,20})(?:\.([0-9]+))?", re.ASCII)


class InvalidAmount(ValueError):
    """An amount that cannot be taken exactly.

    `reason` is one of `not_an_amount`, `not_finite`, `too_many_places`, `too_large`, `negative`.
    """

    def __init__(self, reason: str, explanation: str) -> None:
        super().__init__(explanation)
        self.reason = reason


def to_amount(micros: int) -> str:
    """The API's decimal string with exactly six places: 400000 → "0.400000", -1 → "-0.000001"."""
    whole, fraction = divmod(abs(micros), MICROS_PER_UNIT)
    return f"{_sign(micros)}{whole}.{fraction:0{DECIMAL_PLACES}d}"


def parse_amount(amount: object) -> int:
    """Micros of an amount given in whole currency, as a decimal string, an `int` or a `Decimal`.

    A negative amount is read as such; whether it is allowed is the caller's rule.

    Raises:
        InvalidAmount: a float or bool (inexact, or not a number of money), text that is not a plain decimal
            number (exponents, grouping, spaces, a plus sign), NaN or infinity, more than six places, or more
            than a 64-bit column can hold.
    """
    if isinstance(amount, bool | float):
        raise InvalidAmount(
            "not_an_amount", f"an amount must be a decimal string, not {type(amount).__name__}"
        )
    if isinstance(amount, int):
        return _within_column(amount * MICROS_PER_UNIT)
    if isinstance(amount, Decimal):
        return _parse_decimal(amount)
    if isinstance(amount, str):
        return _parse_text(amount)
    raise InvalidAmount("not_an_amount", f"an amount must be a decimal string, not {type(amount).__name__}")


def format_amount(micros: int) -> str:
    """The amount for people: at least 2 and at most 6 decimals, grouped: 1234500000 → "1,234.50"."""
    whole, fraction = divmod(abs(micros), MICROS_PER_UNIT)
    decimals = f"{fraction:0{DECIMAL_PLACES}d}".rstrip("0").ljust(SHOWN_PLACES, "0")
    return f"{_sign(micros)}{whole:,}.{decimals}"


def format_money(micros: int, currency: str) -> str:
    """The amount for people with its currency after a no-break space: "0.40 USDC"."""
    return f"{format_amount(micros)}{NO_BREAK_SPACE}{currency}"


def round_up_micros(amount: Decimal) -> int:
    """The smallest number of micros that is not below `amount`, given in whole currency.

    The only rounding of money there is; prices use it (provider price × markup). It does not depend on the
    decimal context, so it is exact for any number of digits.

    Raises:
        InvalidAmount: NaN, infinity, a negative amount, or more than a 64-bit column can hold.
    """
    _require_finite_and_small(amount)
    if amount < 0:
        raise InvalidAmount("negative", "a price cannot be negative")
    numerator, denominator = amount.as_integer_ratio()
    return _within_column(-(-numerator * MICROS_PER_UNIT // denominator))


def _sign(micros: int) -> str:
    return "-" if micros < 0 else ""


def _parse_text(text: str) -> int:
    match = _DECIMAL_TEXT.fullmatch(text)
    if match is None:
        raise InvalidAmount("not_an_amount", "an amount must be a plain decimal number such as 0.40")
    sign, whole, decimals = match.group(1), match.group(2), match.group(3) or ""
    if len(decimals) > DECIMAL_PLACES:
        raise InvalidAmount("too_many_places", f"an amount has at most {DECIMAL_PLACES} decimal places")
    micros = int(whole) * MICROS_PER_UNIT + int(decimals.ljust(DECIMAL_PLACES, "0"))
    return _within_column(-micros if sign else micros)


def _parse_decimal(amount: Decimal) -> int:
    _require_finite_and_small(amount)
    numerator, denominator = amount.as_integer_ratio()
    micros, rest = divmod(numerator * MICROS_PER_UNIT, denominator)
    if rest:
        raise InvalidAmount("too_many_places", f"an amount has at most {DECIMAL_PLACES} decimal places")
    return _within_column(micros)


def _require_finite_and_small(amount: Decimal) -> None:
    if not amount.is_finite():
        raise InvalidAmount("not_finite", "an amount must be a finite number")
    # Before any conversion: Decimal("1E+999999999") is short, and ruinous to expand; so is its inverse.
    if amount and amount.adjusted() > len(str(MAX_MICROS)):
        raise InvalidAmount("too_large", "the amount is too large")
    exponent = amount.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -MAX_DECIMAL_PLACES_READ:
        raise InvalidAmount(
            "too_many_places", f"more than {MAX_DECIMAL_PLACES_READ} decimal places are not read"
        )


def _within_column(micros: int) -> int:
    if abs(micros) > MAX_MICROS:
        raise InvalidAmount("too_large", "the amount is too large")
    return micros
