"""Two crashes in succession: killed at any point, and what comes to its aid is killed at any point again.

Not part of the ordinary tests, as there are thousands: `make crash-pairs`.
"""

import pytest

from tests.crash import harness
from tests.crash.effects import KILL, Fault
from tests.crash.harness import OPERATIONS, Case, ForkServer, Operation, fire, prepare, shown
from tests.crash.steps import REQUESTS
from tests.crash.tally import note
from tests.simulator_process import SimulatorProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(0)]
NAMES = ("dispatch fal", "dispatch blind", "fail", "delete")
PARTS = 8  # of each operation's first points, so that two processes share the work evenly


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", NAMES)
def test_two_crashes_in_succession_end_as_none(
    request: pytest.FixtureRequest, simulator: SimulatorProcess, server: ForkServer, name: str, part: int
) -> None:
    operation = OPERATIONS[name]
    cases: list[Case] = []
    for first in first_points(operation, server)[part::PARTS]:
        simulator.reset()
        struck = strike_twice(operation, first, server)
        harness.recover(operation, struck)
        harness.judge(operation, struck, simulator)
        assert [case for case in struck if case.broken] == [], shown(struck)
        cases += struck
    note(request, cases)


def first_points(operation: Operation, server: ForkServer) -> list[Fault]:
    first, counted = prepare(operation, 2)
    for case in (first, counted):
        fire(operation, case, server=server)
    harness.recover(operation, [first, counted])
    return harness.points(operation, counted.runs[-1], [KILL])


def strike_twice(operation: Operation, first: Fault, server: ForkServer) -> list[Case]:
    """All second points after one first point; the first case of them is the count, struck once."""
    aid = operation.step if operation.step in REQUESTS else "work"
    [counted] = prepare(operation, 1)
    counted.fault = first
    fire(operation, counted, server=server)
    counted.fault = None
    fire(operation, counted, server=server, step=aid)
    seconds = harness.points(operation, counted.runs[-1], [KILL])
    cases = prepare(operation, len(seconds))
    for case, second in zip(cases, seconds, strict=True):
        case.fault = first
        fire(operation, case, server=server)
        case.fault = second
        fire(operation, case, server=server, step=aid)
    return [counted, *cases]
