"""The report of a run, as Markdown."""

from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.verify import Verdict

MEBIBYTE = 2**20


@dataclass
class Run:
    """The figures of a run. Times in seconds, memory in bytes."""

    seed: str
    orders: int
    safety_seconds: float = 0.0
    heal_seconds: float = 0.0
    converge_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    memory_first: dict[str, int] = field(default_factory=dict)
    memory_last: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)

    def count(self, kind: str) -> int:
        """Faults of a kind that really happened."""
        return sum(times for name, times in self.faults.items() if name.startswith(f"{kind}: "))


def render(run: Run, totals: dict[str, int]) -> str:
    """The whole report; `totals` counts the faults that were asked for."""
    verdict, broken = run.verdict, [*run.broken, *run.verdict.broken]
    parts = [
        "# Chaos",
        f"Seed `{run.seed}`: {run.orders} videos, ordered by clients that obey the rules for lost answers, "
        f"under {', '.join(f'{number} {name}' for name, number in totals.items())}. "
        f"Faults for {run.safety_seconds:.0f} s, healing {run.heal_seconds:.0f} s; "
        f"all was settled {run.converge_seconds:.1f} s after healing.",
        f"**{len(broken)} violations.** {verdict.charges} charges, {verdict.jobs} jobs at the provider, "
        f"{verdict.waiting} videos wait for a person, as was wished.",
        *([_list(broken)] if broken else []),
        "## Faults",
        _table(("fault", "times"), run.faults),
        "## On the wire between clients and product",
        _table(("request", "times"), run.lost),
        "## What clients saw",
        _table(("answer", "times"), run.statuses),
        "## How the videos ended",
        _table(("end", "videos"), verdict.ends),
        "## Attempts",
        _table(("outcome", "attempts"), Counter(verdict.attempts)),
        "## Lines of the level error",
        _table(("event", "lines"), verdict.alarms),
        "## Tracebacks",
        _table(("process and error", "times"), verdict.tracebacks),
        "## Memory",
        f"Resident, with children, first and last; {run.restarts} times a service was started again.",
        _memory(run),
    ]
    if run.missed:
        parts += ["## Faults that found no victim", _table(("fault", "times"), run.missed)]
    return "\n\n".join(parts) + "\n"


def _table(heads: tuple[str, str], rows: Counter[str]) -> str:
    lines = [f"| {heads[0]} | {heads[1]} |", "|---|---|"]
    lines += [f"| {_cell(name)} | {times} |" for name, times in sorted(rows.items())]
    return "\n".join(lines)


def _memory(run: Run) -> str:
    lines = ["| process | MiB first | MiB last |", "|---|---|---|"]
    for name, first in run.memory_first.items():
        last = run.memory_last.get(name, 0)
        lines.append(f"| {name} | {first / MEBIBYTE:.0f} | {last / MEBIBYTE:.0f} |")
    return "\n".join(lines)


def _list(sentences: list[str]) -> str:
    return "\n".join(f"- {sentence[:600]}" for sentence in sentences[:100])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
