"""The language in which the simulator is told to misbehave. Pure.

A prompt may carry directives: `[sim: drop_after_accept]`, `[sim: fail="content policy" seconds=3]`. Several
are separated by `;`, `,` or white space; names are case-blind and `-` is `_`; a name alone means "yes";
values may be quoted and may spell characters that text rarely holds (`\\u0000`). A scripted rule
(`/_sim/faults`) has the same names in a JSON object. README.md beside this file explains every name.
"""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

Setting = str | float | bool
Directives = dict[str, Setting]

_BLOCK = re.compile(r"""\[\s*sim\s*:((?:"[^"]*"|'[^']*'|[^\]"'])*)\]""", re.IGNORECASE)
_ENTRY = re.compile(r"""([A-Za-z][\w-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s;,\]]*))?""")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_WORDS: dict[str, bool] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def read_directives(prompt: object) -> Directives:
    """All directives of a prompt, in the order written; a later one wins. Anything else gives none."""
    if not isinstance(prompt, str):
        return {}
    found: Directives = {}
    for block in _BLOCK.finditer(prompt):
        for entry in _ENTRY.finditer(block.group(1)):
            found[_name(entry.group(1))] = _value(entry.group(2))
    return found


def normalise(settings: Mapping[str, Any]) -> Directives:
    """A JSON object of settings with its names spelled as in this module; null values are left out."""
    return {
        _name(str(name)): value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in settings.items()
        if value is not None
    }


def surface_settings(directives: Mapping[str, Setting], surface: str) -> Directives:
    """The directives of one surface, without its name: `status_delay=2` is `delay=2` of `status`."""
    start = f"{surface}_"
    return {name.removeprefix(start): value for name, value in directives.items() if name.startswith(start)}


def number(value: object, default: float) -> float:
    """A number out of a setting; the default where there is none (`delay` alone, say)."""
    if isinstance(value, bool) or value is None:
        return default
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(str(value).removesuffix("s"))
    except ValueError:
        return default


def integer(value: object) -> int | None:
    """A whole number out of a setting, or None."""
    found = number(value, float("nan"))
    return int(found) if found == found and abs(found) != float("inf") else None


def exact(value: object, default: Decimal) -> Decimal:
    """A decimal out of a setting; the default where it is none."""
    try:
        return default if value is None else Decimal(str(value))
    except InvalidOperation:
        return default


def text(value: object) -> str | None:
    """The words of a setting; None where it has none."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _name(written: str) -> str:
    return written.strip().lower().replace("-", "_")


def _value(written: str | None) -> Setting:
    if written is None or written == "":
        return True
    if written[0] in "\"'":
        return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), written[1:-1])
    if written.lower() in _WORDS:
        return _WORDS[written.lower()]
    try:
        return float(written)
    except ValueError:
        return written
