"""The harness can fail: each bug of `seeded_bugs`, laid over the product, is reported, and by its own words.

Without the bug the same points are silent: that is `test_kill_at_any_point.py`.
"""

from dataclasses import dataclass, field

import pytest

from tests.crash.effects import DROP, KILL, SLEEP
from tests.crash.harness import OPERATIONS, ForkServer, strike_everywhere
from tests.crash.seeded_bugs import BUGS
from tests.simulator_process import SimulatorProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Caught:
    """Where a bug shows: the operation, the faults it takes (none for one that always shows), the words."""

    operation: str
    faults: list[str] = field(default_factory=list)
    says: str = ""


CAUGHT = {
    "message before commit": Caught(
        "submit", says="message videos.tasks.dispatch_due with a transaction open"
    ),
    "no deadline check": Caught("dispatch fal", [SLEEP], "a sender that slept through its lease sent"),
    "timeout taken for failure": Caught("dispatch lost", says="ended as End(state='failed'"),
    "refund in a second transaction": Caught("fail", [KILL], "the rows say otherwise"),
    "claim after task": Caught("submit", says="answered 500"),
    "stale lease decides": Caught("poll", [SLEEP], "a stale lease changed the task"),
    "answer recorded once": Caught("dispatch blind", [DROP], "received and is not on record"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_seeded_bug_is_caught(simulator: SimulatorProcess, server: ForkServer, bug: str) -> None:
    caught = CAUGHT[bug]
    cases = strike_everywhere(
        OPERATIONS[caught.operation], server=server, simulator=simulator, kinds=caught.faults, bug=bug
    )
    said = [sentence for case in cases for sentence in case.broken]
    assert any(caught.says in sentence for sentence in said), said
