"""C19: the provider throttles submissions."""

from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import kinds_of, state_of
from tests.makers import PRICE_MICROS, Owner
from videos.engine import dispatch
from videos.models import ProviderStatus

pytestmark = pytest.mark.django_db
GROWING = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]  # doubling, and at most a minute


def pauses_of_eight(owner: Owner, client_id: str) -> list[float]:
    """Dispatch eight times, whenever it is due; the pauses that the task was given."""
    pauses = []
    for turn in range(1, 9):
        makers.make_due()
        assert dispatch.dispatch_due() == 1
        attempt = makers.attempts_of(owner, client_id)[-1]
        assert (attempt.number, attempt.outcome, attempt.reason) == (turn, "rejected", "throttled")
        assert state_of(owner, client_id) == ("submitting", "charged", "provider_busy")
        assert dispatch.dispatch_due() == 0  # not before its time
        due_at = makers.task_of(owner, client_id).next_check_at
        assert due_at is not None and attempt.finished_at is not None
        pauses.append((due_at - attempt.finished_at).total_seconds())
    return pauses


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, GROWING),
        (7, [max(pause, 7.0) for pause in GROWING]),
        (90, [90.0] * 8),
        (100_000, [900.0] * 8),  # a mistake of the provider; a quarter of an hour is enough
        ("soon", GROWING),
    ],
)
@pytest.mark.usefixtures("steady_chance")
def test_eight_refusals_for_too_many_requests_are_waited_out_with_growing_pauses(
    owner: Owner, simulator: Any, told: Any, expected: list[float]
) -> None:
    fault = {"answer": 429} if told is None else {"answer": 429, "retry_after": told}
    simulator.add_fault(fault, times=8)
    client_id = makers.submit(owner)
    assert pauses_of_eight(owner, client_id) == expected
    makers.work()
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS
    assert (simulator.count(), simulator.posts()) == (1, 9)
    assert not ProviderStatus.objects.filter(alarm__isnull=False).exists()


def test_a_page_of_a_proxy_with_429_is_not_the_provider_s_word_and_leaves_the_task_unknown(
    owner: Owner, simulator: Any
) -> None:
    simulator.add_fault({"answer": 429, "body": "html"}, times=1)
    client_id = makers.submit(owner)
    makers.work()
    assert state_of(owner, client_id)[:2] == ("unknown", "charged")
    assert simulator.posts() == 1
