"""The database goes away while a provider's answers come in: an answer once received is never lost."""

import time
from collections.abc import Iterator

import pytest

from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.lossy_wire import Loss, LossyWire, over, wire_to_the_database
from tests.concurrency.racing import Call, Held
from tests.simulator_process import SimulatorProcess
from videos.engine import dispatch
from videos.locks import lock_task
from videos.models import Attempt

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]
FULL = 100_000_000


@pytest.fixture
def wire() -> Iterator[LossyWire]:
    with wire_to_the_database() as lossy:
        yield lossy


def lose_the_third_commit(wire: LossyWire, loss: Loss) -> None:
    """Of one task's sending: the lease, the attempt, and then its answer."""
    wire.losses = [Loss.NONE, Loss.NONE, loss]


@pytest.mark.parametrize("loss", [Loss.BEFORE, Loss.AFTER, Loss.LATE])
@pytest.mark.parametrize("model", [makers.MODEL, makers.BLIND_MODEL])
def test_an_accepted_answer_is_recorded_although_its_commit_was_lost(
    simulator: SimulatorProcess, wire: LossyWire, loss: Loss, model: str
) -> None:
    owner = makers.make_owner()
    client_id = makers.submit(owner, model=model)
    lose_the_third_commit(wire, loss)
    assert Call(over(wire, lambda: dispatch.dispatch_due())).result() == 1
    assert makers.task_of(owner, client_id).state == "processing"
    assert [attempt.outcome for attempt in makers.attempts_of(owner, client_id)] == ["accepted"]
    makers.work()
    assert makers.task_of(owner, client_id).state == "completed"
    assert simulator.count() == 1
    assert owner.balance_micros == FULL - makers.PRICE_MICROS
    assert_books_balance()


@pytest.mark.parametrize("loss", [Loss.BEFORE, Loss.AFTER])
def test_a_refusal_whose_commit_was_lost_fails_and_refunds_once(
    simulator: SimulatorProcess, wire: LossyWire, loss: Loss
) -> None:
    owner = makers.make_owner()
    client_id = makers.submit(owner, prompt="a cat [sim: refuse=422]")
    lose_the_third_commit(wire, loss)
    Call(over(wire, lambda: dispatch.dispatch_due())).result()
    makers.work()
    assert makers.task_of(owner, client_id).state == "failed"
    assert (simulator.posts(), simulator.count()) == (1, 0)
    assert owner.balance_micros == FULL
    assert_books_balance()


def test_answers_that_come_while_the_database_restarts_are_all_recorded(
    simulator: SimulatorProcess, wire: LossyWire
) -> None:
    owner = makers.make_owner()
    ids = [makers.submit(owner, model=makers.BLIND_MODEL, prompt="a cat [sim: delay=1]") for _ in range(4)]
    sender = Call(over(wire, lambda: dispatch.dispatch_due()))
    until = time.monotonic() + 10
    while Attempt.objects.count() < 4 and time.monotonic() < until:
        time.sleep(0.01)
    wire.cut()
    wire.is_down = True
    time.sleep(1.5)  # the answers are here, and there is no database to tell
    wire.is_down = False
    assert sender.result() == 4
    assert {makers.task_of(owner, client_id).state for client_id in ids} == {"processing"}
    assert simulator.count() == simulator.posts() == 4


def test_an_answer_whose_task_is_locked_for_too_long_is_recorded_when_the_lock_is_gone(
    simulator: SimulatorProcess, wire: LossyWire
) -> None:
    owner = makers.make_owner()
    client_id = makers.submit(owner, model=makers.BLIND_MODEL, prompt="a cat [sim: delay=0.5]")
    task_id = makers.task_of(owner, client_id).pk
    sender = Call(over(wire, lambda: dispatch.dispatch_due(), lock_timeout="200ms"))
    until = time.monotonic() + 10
    while Attempt.objects.count() < 1 and time.monotonic() < until:
        time.sleep(0.01)
    somebody = Held(lambda: lock_task(task_id))
    time.sleep(1.2)  # the answer has come and has waited in vain
    assert makers.task_of(owner, client_id).state == "submitting"
    somebody.commit()
    sender.result()
    assert makers.task_of(owner, client_id).state == "processing"
