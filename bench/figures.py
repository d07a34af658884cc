"""A figure beside its reference, measured in alternating slices; the table and the file they end in."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

Slice = Callable[[], float]  # measures once, for as long as the caller chose; a rate or a latency
HEADINGS = ("name", "value", "reference", "ratio", "unit", "target", "ok")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the table. `at_least` and `at_most` judge the ratio; without them it is only told."""

    name: str
    value: float
    reference: float | None
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if not self.reference else self.value / self.reference

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least}"
        return "" if self.at_most is None else f"<= {self.at_most}"

    @property
    def verdict(self) -> str:
        ratio = self.ratio
        if ratio is None or (self.at_least is None and self.at_most is None):
            return ""
        is_met = (self.at_least is None or ratio >= self.at_least) and (
            self.at_most is None or ratio <= self.at_most
        )
        return "yes" if is_met else "NO"


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The medians of both sides, and how far apart the slices' own ratios were."""

    value: float
    reference: float
    lowest: float
    highest: float

    @property
    def spread(self) -> str:
        return f"slices {self.lowest:.2f}-{self.highest:.2f}"


def interleaved(value: Slice, reference: Slice, rounds: int) -> Sides:
    """Measure A B B A A B …: what disturbs the machine for a while disturbs both sides.

    The first pair warms up and is not counted.
    """
    value(), reference()
    values, references = [], []
    for number in range(rounds):
        if number % 2 == 0:
            values.append(value())
            references.append(reference())
        else:
            references.append(reference())
            values.append(value())
    ratios = [one / other for one, other in zip(values, references, strict=True)]
    return Sides(value=median(values), reference=median(references), lowest=min(ratios), highest=max(ratios))


def table(figures: Sequence[Figure]) -> str:
    """The figures in columns, and below them their notes."""
    rows = [
        (
            figure.name,
            _shown(figure.value),
            "" if figure.reference is None else _shown(figure.reference),
            "" if figure.ratio is None else f"{figure.ratio:.3f}",
            figure.unit,
            figure.target,
            figure.verdict,
        )
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in [HEADINGS, *rows]) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [HEADINGS, tuple("-" * width for width in widths), *rows]
    ]
    return "\n".join([*lines, *(f"{figure.name}: {figure.note}" for figure in figures if figure.note)])


def write_json(figures: Sequence[Figure], path: Path) -> None:
    """`{name: {value, reference, ratio, unit}}`, for programs."""
    document = {
        figure.name: {
            "value": figure.value,
            "reference": figure.reference,
            "ratio": figure.ratio,
            "unit": figure.unit,
        }
        for figure in figures
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")


def _shown(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
