"""Counts the points that the tests struck, over all test processes, for the last lines of a run."""

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.crash.effects import FAULTS
from tests.crash.harness import Case

OPERATION, VIOLATIONS = "crash operation", "crash violations"


def note(request: pytest.FixtureRequest, cases: Sequence[Case]) -> None:
    """Keep what one operation's points came to on the test's report, which reaches the first process."""
    kinds = Counter(case.fault.kind for case in cases if case.fault is not None)
    broken = sum(bool(case.broken) for case in cases)
    request.node.user_properties += [(OPERATION, request.node.name), (VIOLATIONS, broken), *kinds.items()]


def summarise(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many points there were: a harness that found none would pass as well."""
    totals: Counter[str] = Counter()
    operations = 0
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            properties = dict(report.user_properties)
            if report.when == "call" and OPERATION in properties:
                operations += 1
                totals.update({name: properties.get(name, 0) for name in (*FAULTS, VIOLATIONS)})
    if operations:
        points = ", ".join(f"{kind} {totals[kind]}" for kind in FAULTS)
        terminalreporter.write_line(
            f"crash points: {sum(totals[kind] for kind in FAULTS)} ({points}) of {operations} operations, "
            f"{totals[VIOLATIONS]} violations"
        )
