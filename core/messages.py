"""What the message catalogues of all apps are made of: values that say themselves, and rendering.

A catalogue row is one whole sentence (a gettext msgid) with named `{variables}`. The values put into it are
typed, so that an amount, a duration or a file size is written the same way everywhere.
"""

import string
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from django.utils import dateformat, timezone, translation
from django.utils.translation import gettext, gettext_noop, ngettext, pgettext

from core.money import NO_BREAK_SPACE, format_money

LANGUAGES = ("en", "zh-hans")

SECONDS_PER_MINUTE = 60
SECONDS_PER_HOUR = 3_600
SECONDS_PER_DAY = 86_400
# A unit is used from two (days: three) of it on: "90 s" says more than "1 min", "36 h" more than "1 day".
# One whole minute is said as such.
SHORTEST_IN_MINUTES = 2 * SECONDS_PER_MINUTE
SHORTEST_IN_HOURS = 2 * SECONDS_PER_HOUR
SHORTEST_IN_DAYS = 3 * SECONDS_PER_DAY

BYTES_PER_STEP = 1_024
SIZE_UNITS = ("B", "KB", "MB", "GB", "TB")

LONGEST_FOREIGN_NAME = 40  # a field name that a client made up is shown, but not at any length


@runtime_checkable
class Value(Protocol):
    """Something that can be put into a sentence, in the language that is active."""

    def text(self) -> str: ...


@dataclass(frozen=True)
class Money:
    micros: int
    currency: str

    def text(self) -> str:
        return format_money(self.micros, self.currency)


@dataclass(frozen=True)
class Duration:
    """A length of time in one unit: "90 s", "3 min", "24 h". Rounds down, or up for an upper bound."""

    seconds: int
    rounds_up: bool = False

    def text(self) -> str:
        seconds = max(self.seconds, 0)
        if seconds < SHORTEST_IN_MINUTES and seconds != SECONDS_PER_MINUTE:
            return gettext("{n} s").format(n=seconds)
        if seconds < SHORTEST_IN_HOURS:
            return gettext("{n} min").format(n=self._count(seconds, SECONDS_PER_MINUTE))
        if seconds < SHORTEST_IN_DAYS:
            return gettext("{n} h").format(n=self._count(seconds, SECONDS_PER_HOUR))
        days = self._count(seconds, SECONDS_PER_DAY)
        return ngettext("{n} day", "{n} days", days).format(n=days)

    def _count(self, seconds: int, unit: int) -> int:
        return -(-seconds // unit) if self.rounds_up else seconds // unit


@dataclass(frozen=True)
class Clock:
    """A time of day in the reader's zone, with the zone, as the API's readers share none: "15:05 UTC+8"."""

    at: datetime

    def text(self) -> str:
        local = timezone.localtime(self.at)
        return f"{local:%H:%M}{NO_BREAK_SPACE}{_zone(local)}"


@dataclass(frozen=True)
class Moment:
    """A date and time of day in the reader's zone: "30 Nov, 15:05 UTC"."""

    at: datetime

    def text(self) -> str:
        local = timezone.localtime(self.at)
        # Translators: a format of Django's "date" filter; the time and zone are added after it.
        day = dateformat.format(local, pgettext("date format with time", "j M,"))
        return f"{day}{NO_BREAK_SPACE}{local:%H:%M}{NO_BREAK_SPACE}{_zone(local)}"


@dataclass(frozen=True)
class Day:
    """A calendar date in the reader's zone: "30 Nov 2026"."""

    at: datetime

    def text(self) -> str:
        # Translators: a format of Django's "date" filter.
        return dateformat.format(timezone.localtime(self.at), pgettext("date format", "j M Y"))


@dataclass(frozen=True)
class Size:
    """A number of bytes in the largest unit of 1,024 that fits, with one decimal: "19.1 MB".

    What is too large rounds up and its limit rounds down, so that one byte too many never reads "20 MB of
    20 MB".
    """

    count: int
    rounds_up: bool = False

    def text(self) -> str:
        unit, step = 0, 1
        while unit + 1 < len(SIZE_UNITS) and self.count >= step * BYTES_PER_STEP:
            unit, step = unit + 1, step * BYTES_PER_STEP
        tenths = -(-self.count * 10 // step) if self.rounds_up else self.count * 10 // step
        whole, tenth = divmod(tenths, 10)
        return f"{whole:,}{f'.{tenth}' if tenth else ''}{NO_BREAK_SPACE}{SIZE_UNITS[unit]}"


# What people call the fields of a request.
FIELD_NAMES = {
    "id": gettext_noop("id"),
    "model": gettext_noop("model"),
    "prompt": gettext_noop("prompt"),
    "image": gettext_noop("image"),
    "image_file": gettext_noop("image"),
    "image_url": gettext_noop("image address"),
    "seconds": gettext_noop("length"),
    "resolution": gettext_noop("resolution"),
    "aspect_ratio": gettext_noop("aspect ratio"),
    "audio": gettext_noop("sound"),
    "seed": gettext_noop("seed"),
    "max_price": gettext_noop("highest price"),
    "name": gettext_noop("name"),
    "version": gettext_noop("version"),
    "document": gettext_noop("document"),
    "file": gettext_noop("file"),
    "items": gettext_noop("list of items"),
    "item_id": gettext_noop("item id"),
    "cap": gettext_noop("spending limit"),
    "amount": gettext_noop("amount"),
    "request": gettext_noop("request"),
    "input": gettext_noop("input"),
}


@dataclass(frozen=True)
class FieldName:
    """A field of a request in people's words; a name nobody knows is shown in quotes, cut and cleaned."""

    name: str
    starts_sentence: bool = False

    def text(self) -> str:
        if self.name not in FIELD_NAMES:
            printable = "".join(character for character in self.name if character.isprintable())
            return f"“{printable[:LONGEST_FOREIGN_NAME]}”"
        words = gettext(FIELD_NAMES[self.name])
        return words[:1].upper() + words[1:] if self.starts_sentence and words.isascii() else words


def ngettext_noop(singular: str, plural: str) -> tuple[str, str]:
    """Marks a counted sentence for extraction and returns it untranslated, as `gettext_noop` does."""
    return singular, plural


def in_language(language: str | None) -> AbstractContextManager[None]:
    """Everything inside is said in the language, or, for None, in the one that is active already."""
    active = translation.get_language()
    wanted = language or active or LANGUAGES[0]
    return nullcontext() if wanted == active else translation.override(wanted)


def variables_of(sentence: str) -> frozenset[str]:
    """The names of the `{variables}` in a sentence."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None)


def render_sentence(
    sentence: str,
    params: Mapping[str, Any],
    *,
    language: str | None = None,
    plural: str | None = None,
    counted: str | None = None,
) -> str:
    """The sentence in the given language, or the active one, with every variable filled in.

    `plural` is the English sentence for several and `counted` the variable that decides; both or neither.

    Raises:
        KeyError: a variable has no value.
    """
    with in_language(language):
        if plural is not None and counted is not None:
            translated = ngettext(sentence, plural, params[counted])
        else:
            translated = gettext(sentence)
        return translated.format_map({name: _say(value) for name, value in params.items()})


def _say(value: object) -> str:
    if isinstance(value, Value):
        return value.text()
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _zone(local: datetime) -> str:
    """ "UTC", "UTC+8" or "UTC+5:30": abbreviations such as CST mean several zones."""
    offset = local.utcoffset()
    minutes = int(offset.total_seconds()) // 60 if offset is not None else 0
    if minutes == 0:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours}{f':{rest:02d}' if rest else ''}"
