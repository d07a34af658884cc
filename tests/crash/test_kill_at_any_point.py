"""Between any two effects of every operation: kill -9, a lost database, a lost COMMIT, a sleep too long.

Afterwards the end that the contract allows for what was seen to happen, one job at most, and every invariant.
"""

import pytest

from tests.crash.effects import KILL
from tests.crash.harness import OPERATIONS, ForkServer, shown, strike_everywhere
from tests.crash.tally import note
from tests.simulator_process import SimulatorProcess

# Some hundred processes and their recovery, one after the other: a busy machine needs its time.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]
FEWEST_POINTS = 5  # an injector that has gone blind sees fewer effects than any operation has


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_happens_between_two_effects_the_end_is_right(
    request: pytest.FixtureRequest, simulator: SimulatorProcess, server: ForkServer, name: str
) -> None:
    cases = strike_everywhere(OPERATIONS[name], server=server, simulator=simulator)
    note(request, cases)
    assert [case for case in cases if case.broken] == [], shown(cases)
    assert sum(case.fault is not None and case.fault.kind == KILL for case in cases) >= FEWEST_POINTS
