"""Messages for ids without a live task, and for requests that were refused and left no row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.utils.translation import gettext, gettext_noop, ngettext

from core.messages import Day, FieldName, Money, Size, ngettext_noop
from core.money import format_money
from videos.messages.row import Message
from videos.messages.rows import INCONSISTENT, ROWS, Quoted

logger = structlog.get_logger(__name__)

# What a field or a person is allowed. A counted limit has two forms and is counted by `n`.
LIMITS: dict[str, str | tuple[str, str]] = {
    "required": gettext_noop("it is required"),
    "no_such_field": gettext_noop("there is no such field"),
    "given_once": gettext_noop("it may be given only once"),
    "levels": ngettext_noop("it may be {n} level deep", "it may be up to {n} levels deep"),
    "not_json": gettext_noop("it must be a JSON object in UTF-8"),
    "text": gettext_noop("it must be text"),
    "whole_number": gettext_noop("it must be a whole number"),
    "true_or_false": gettext_noop("it must be true or false"),
    "amount": gettext_noop("it must be an amount with at most six decimals, in quotes"),
    "characters": ngettext_noop("it may have {n} character", "it may have up to {n} characters"),
    "between": gettext_noop("it must be between {low} and {high}"),
    "at_least": gettext_noop("it must be {low} or more"),
    "one_of": gettext_noop("it must be one of {choices}"),
    "plain_text": gettext_noop("it must not contain control characters or broken Unicode"),
    "id_form": gettext_noop("it must have 8 to 64 letters, digits, hyphens or underscores"),
    "id_reserved": gettext_noop("it must not begin with b_"),
    "one_image": gettext_noop("only one image may be given"),
    "image_needed": gettext_noop("this model needs an image"),
    "image_unused": gettext_noop("this model takes no image"),
    "cursor": gettext_noop("it must be as an earlier answer gave it"),
    "file_id": gettext_noop("it must be the id of a file"),
    "image_type": gettext_noop("it must be a JPEG, PNG or WebP image"),
    "address": gettext_noop("it must be a public https address"),
    "not_offered": gettext_noop("this model does not offer it"),
    "ids": ngettext_noop("only {n} id may be asked for at once", "up to {n} ids may be asked for at once"),
    "running_videos": ngettext_noop("{n} video at once", "{n} videos at once"),
    "spend_per_day": gettext_noop("{amount} a day"),
    "spend_of_token": gettext_noop("{amount} with this token"),
    "spend_of_provider": gettext_noop("what may be ordered from this provider in a day"),
}


@dataclass(frozen=True)
class Limit:
    """One of `LIMITS` with its values: `Limit("characters", {"n": 4000})`.

    `micros` with `currency` become `{amount}`; a list of `choices` is joined.
    """

    kind: str
    values: Mapping[str, Any]

    def text(self) -> str:
        sentence = LIMITS[self.kind]
        values = {name: _plain(value) for name, value in self.values.items()}
        if "micros" in self.values:
            values["amount"] = format_money(self.values["micros"], self.values["currency"])
        if isinstance(sentence, tuple):
            return ngettext(*sentence, self.values["n"]).format_map(values)
        return gettext(sentence).format_map(values)


def describe_absent(
    kind: str,
    *,
    money: str = "not_charged",
    charged_micros: int = 0,
    returned_micros: int = 0,
    currency: str = "",
    deleted_at: datetime | None = None,
) -> Message:
    """The message of an id that has no live task: `not_received`, `abandoned` or `deleted`.

    For `deleted`, `money` is the state of the charge today and `deleted_at` is needed; `returned_micros`
    counts later goodwill too. A deleted task whose money is still held cannot be, and is logged and described
    as `inconsistent`.

    Raises:
        ValueError: an unknown kind, or a deletion without its time.
    """
    if kind in ("not_received", "abandoned"):
        return _message("F1" if kind == "not_received" else "F2", {})
    if kind != "deleted" or deleted_at is None:
        raise ValueError(f"not an absent id that can be described: {kind}, deleted at {deleted_at}")
    date = Day(deleted_at)
    if money == "not_charged" and charged_micros == 0:
        return _message("F5", {"date": date})
    if money == "refunded" and 0 < returned_micros == charged_micros:
        return _message("F4", {"date": date, "amount": Money(returned_micros, currency)})
    if money in ("settled", "partially_refunded") and 0 <= returned_micros < charged_micros:
        return _message("F3", {"date": date, "net": Money(charged_micros - returned_micros, currency)})
    logger.error(
        "absent_facts_inconsistent",
        money=money,
        charged_micros=charged_micros,
        returned_micros=returned_micros,
    )
    return _message(INCONSISTENT, {})


def describe_refusal(code: str, *, currency: str = "", **params: Any) -> Message:
    """The message of a refused or replayed request, and of errors of the protocol.

    | code | params |
    |---|---|
    | `invalid` | `field`, `limit` (a `Limit`, the kind of one without values, or words) |
    | `too_large` | `size`, `limit` in bytes |
    | `price_changed` | `old`, `new` in micros, with `currency` |
    | `insufficient_balance` | `price`, `balance` in micros, with `currency` |
    | `not_deletable` | `amount` in micros, with `currency` |
    | `model_unavailable` | `model` |
    | `rate_limited` | `seconds` |
    | `limit_reached` | `limit`, as for `invalid` |
    | `quota_exceeded` | `used`, `quota` in bytes |
    | `file_in_use` | `n` |
    | `not_cancellable` | `task`, the `Message` of the task |

    All others take none. Extra params are refused: someone would expect them to be said.

    Raises:
        KeyError: no such code, or a param is missing.
        ValueError: a param that the sentence does not have, or money without its currency.
    """
    row = ROWS[_ROW_OF_REFUSAL[code]]
    if extra := set(params) - row.variables:
        raise ValueError(f"the sentence of {code} has no place for {sorted(extra)}")
    convert = _CONVERTERS.get(code, {})
    values: dict[str, Any] = {}
    for name in sorted(row.variables):
        if name in _MONEY_VARIABLES:
            if not currency:
                raise ValueError(f"the sentence of {code} names money and needs its currency")
            values[name] = Money(params[name], currency)
        else:
            converter: Callable[[Any], Any] = convert.get(name, _unchanged)
            values[name] = converter(params[name])
    return Message(code=row.code, row=row.id, params=values)


def _message(row_id: str, params: Mapping[str, Any]) -> Message:
    return Message(code=ROWS[row_id].code, row=row_id, params=params)


def _unchanged(value: Any) -> Any:
    return value


def _limit(limit: object) -> object:
    return Limit(limit, {}) if isinstance(limit, str) and limit in LIMITS else limit


def _plain(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(choice) for choice in value)
    return str(value)


_ROW_OF_REFUSAL: dict[str, str] = {
    row.code: row.id for row in ROWS.values() if row.id[0] in "GP" or row.id == "C1"
}

_MONEY_VARIABLES = frozenset({"old", "new", "price", "balance", "amount"})

_CONVERTERS: dict[str, dict[str, Callable[..., Any]]] = {
    "invalid": {"field": lambda name: FieldName(name, starts_sentence=True), "limit": _limit},
    "too_large": {"size": lambda count: Size(count, rounds_up=True), "limit": Size},
    "limit_reached": {"limit": _limit},
    "quota_exceeded": {"used": lambda count: Size(count, rounds_up=True), "quota": Size},
    "not_cancellable": {"task": Quoted},
}
