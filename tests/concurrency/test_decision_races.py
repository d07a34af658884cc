"""Workers, owners, support and providers decide about one task at once: one of them does, exactly once."""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from billing.models import Resolution
from core import db
from core.http import Deadline
from files.models import StoredFile
from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    PATIENCE_SECONDS,
    Call,
    Held,
    body_of,
    race_to_success,
    run_sql,
    scratch_tables,
)
from tests.concurrency.submissions import begin_sending, cancel, lease_of, send, states_of, submit_many
from tests.simulator_process import SimulatorProcess
from videos import operations
from videos.engine import dispatch, unknowns
from videos.engine.leases import StaleLease, due, take_due
from videos.errors import NotCancellable
from videos.models import Attempt, VideoTask
from videos.providers.registry import get_provider

pytestmark = [pytest.mark.django_db(transaction=True)]
needs_row_locks = pytest.mark.postgresql
PRICE = makers.PRICE_MICROS
FULL = 1_000_000_000


@pytest.fixture
def owner() -> makers.Owner:
    return makers.make_owner(balance="1000")


# --- taking work ------------------------------------------------------------------------------------


def test_three_workers_that_take_work_at_once_take_different_tasks(owner: makers.Owner) -> None:
    submit_many(owner, 30)
    taken = race_to_success(*[lambda: take_due(work="dispatch", provider="fal", limit=12)] * 3)
    ids = [task.pk for part in taken for task, _ in part]
    assert len(ids) == len(set(ids)) == 30
    assert max(len(part) for part in taken) <= 12


@needs_row_locks
def test_a_worker_skips_what_another_is_just_taking_and_does_not_wait_for_it(owner: makers.Owner) -> None:
    submit_many(owner, 4)
    first = Held(lambda: list(due(work="dispatch", provider="fal", now=db.now()).select_for_update()[:3]))
    second = Call(lambda: take_due(work="dispatch", provider="fal", limit=10)).result()
    assert len(second) == 1
    assert second[0][0].pk not in {task.pk for task in first.commit()}


@needs_row_locks
def test_without_the_row_lock_two_workers_take_the_same_task(owner: makers.Owner) -> None:
    makers.submit(owner)

    def take_without_a_lock() -> list[Any]:
        ids = list(due(work="dispatch", provider="fal", now=db.now()).values_list("pk", flat=True))
        later = db.now() + timedelta(seconds=60)
        VideoTask.objects.filter(pk__in=ids).update(next_check_at=later)
        return ids

    def take_in_a_transaction() -> list[Any]:
        with transaction.atomic():
            return take_without_a_lock()

    first = Held(take_without_a_lock)
    second = Call(take_in_a_transaction)
    second.wait_until_it_waits_for_a_lock()
    assert first.commit() == second.result() != []


def test_two_dispatchers_send_every_task_once(owner: makers.Owner, simulator: SimulatorProcess) -> None:
    ids = submit_many(owner, 20)
    sent = race_to_success(
        lambda: dispatch.dispatch_provider("fal"), lambda: dispatch.dispatch_provider("fal")
    )
    assert sum(sent) == 20
    assert simulator.posts() == simulator.count() == 20
    assert {len(makers.attempts_of(owner, client_id)) for client_id in ids} == {1}
    makers.work()
    assert set(states_of(owner, ids)) == {"completed"}
    assert owner.balance_micros == FULL - 20 * PRICE
    assert_books_balance()


# --- cancel against dispatch ------------------------------------------------------------------------


@needs_row_locks
def test_without_the_task_lock_a_cancel_judges_on_an_old_snapshot_and_refunds_what_is_sent() -> None:
    """`UPDATE … WHERE NOT EXISTS (attempt)` waits for the dispatcher and then still sees no attempt."""
    with scratch_tables(
        "CREATE TABLE scratch_task (id int PRIMARY KEY, state text)",
        "CREATE TABLE scratch_attempt (task int)",
        "INSERT INTO scratch_task VALUES (1, 'submitting')",
    ):

        def begin() -> None:
            run_sql("SELECT 1 FROM scratch_task WHERE id = 1 FOR UPDATE")
            run_sql("INSERT INTO scratch_attempt VALUES (1)")

        def cancel_in_one_statement() -> int:
            return len(
                run_sql(
                    "UPDATE scratch_task SET state = 'failed' WHERE id = 1 AND state = 'submitting' AND NOT "
                    "EXISTS (SELECT 1 FROM scratch_attempt WHERE task = scratch_task.id) RETURNING id"
                )
            )

        sender = Held(begin)
        canceller = Call(cancel_in_one_statement)
        canceller.wait_until_it_waits_for_a_lock()
        sender.commit()
        assert canceller.result() == 1  # cancelled and refunded, with its attempt on the way
        assert run_sql("SELECT count(*) FROM scratch_attempt") == [(1,)]


@needs_row_locks
@pytest.mark.parametrize("model", [makers.MODEL, makers.BLIND_MODEL])
def test_a_cancel_that_waits_for_the_sender_sees_its_attempt(
    owner: makers.Owner, simulator: SimulatorProcess, model: str
) -> None:
    client_id = makers.submit(owner, model=model)
    task, lease = lease_of("dispatch", client_id)
    provider = get_provider(task.provider)
    sender = Held(
        lambda: body_of(dispatch.begin_attempt)(
            lease=lease, provider=provider, deadline=Deadline(30), now=db.now()
        )
    )
    canceller = Call(lambda: cancel(owner, client_id))
    canceller.wait_until_it_waits_for_a_lock()
    sending = sender.commit()
    if model == makers.MODEL:
        assert canceller.result().is_done is False
    else:
        with pytest.raises(NotCancellable):
            canceller.result()
    answer, response = send(sending)
    dispatch.record_answer(sending=sending, answer=answer, response=response)
    assert makers.task_of(owner, client_id).state == "processing"
    assert simulator.count() == 1
    assert Resolution.objects.count() == 0
    assert_books_balance()


@needs_row_locks
def test_a_sender_that_waits_for_a_cancel_sends_nothing(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id = makers.submit(owner)
    task, lease = lease_of("dispatch", client_id)
    provider = get_provider(task.provider)
    canceller = Held(
        lambda: body_of(operations.cancel)(owner_id=owner.id, client_id=client_id, now=timezone.now())
    )
    sender = Call(
        lambda: dispatch.begin_attempt(lease=lease, provider=provider, deadline=Deadline(30), now=db.now())
    )
    sender.wait_until_it_waits_for_a_lock()
    assert canceller.commit().is_done
    with pytest.raises(StaleLease):
        sender.result()
    makers.work()
    assert (Attempt.objects.count(), simulator.posts()) == (0, 0)
    assert owner.balance_micros == FULL
    assert_books_balance()


def test_of_cancel_and_dispatch_either_nothing_is_sent_or_nothing_is_cancelled(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    ids = submit_many(owner, 40, model=makers.BLIND_MODEL)  # a contract without cancellation: yes or no

    under_way = threading.Event()  # neither side always comes first

    def cancel_all() -> list[str]:
        done = []
        for client_id in reversed(ids):
            try:
                assert cancel(owner, client_id).is_done
            except NotCancellable:
                continue
            done.append(client_id)
            under_way.set()
            time.sleep(0.01)
        return done

    def send_all() -> None:
        assert under_way.wait(PATIENCE_SECONDS)
        dispatch.dispatch_provider("fal_blind")

    _, cancelled = race_to_success(send_all, cancel_all)
    assert isinstance(cancelled, list)
    for client_id in ids:
        task = makers.task_of(owner, client_id)
        attempts = makers.attempts_of(owner, client_id)
        expected = ("failed", 0) if client_id in cancelled else ("processing", 1)
        assert (task.state, len(attempts)) == expected
    assert 0 < len(cancelled) < 40, "one side always came first; nothing was raced"
    assert simulator.posts() == 40 - len(cancelled)
    assert owner.balance_micros == FULL - (40 - len(cancelled)) * PRICE
    assert_books_balance()


# --- giving up against a late answer ----------------------------------------------------------------


def unknown_and_overdue(owner: makers.Owner) -> tuple[str, Any, Any, Any]:
    """A task whose sender slept through its lease and comes back a day later with the provider's yes."""
    client_id = makers.submit(owner, model=makers.BLIND_MODEL)
    sending = begin_sending(client_id)
    answer, response = send(sending)
    _, second = lease_of("dispatch", client_id)
    assert (
        dispatch.begin_attempt(lease=second, provider=sending.provider, deadline=Deadline(30), now=db.now())
        is None
    )
    assert makers.task_of(owner, client_id).state == "unknown"
    makers.age([client_id], first_unclear_at=timedelta(hours=25))
    return client_id, sending, answer, response


def test_an_answer_that_arrives_while_policy_gives_up_is_kept_and_decides_at_most_once(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    cases = [unknown_and_overdue(owner) for _ in range(6)]
    makers.make_due()

    def late_answers() -> None:
        for _, sending, answer, response in cases:
            dispatch.record_answer(sending=sending, answer=answer, response=response)

    race_to_success(late_answers, unknowns.check_unknown_due, unknowns.check_unknown_due)
    for client_id, *_ in cases:
        task, (attempt,) = makers.task_of(owner, client_id), makers.attempts_of(owner, client_id)
        assert attempt.outcome == "accepted"  # an answer once received is never lost
        assert (task.state, attempt.late_check_at is None) in (("processing", True), ("failed", False))
    makers.work()
    given_up = states_of(owner, [case[0] for case in cases]).count("failed")
    assert StoredFile.objects.count() == 6  # completed, or given as a gift after the refund
    assert owner.balance_micros == FULL - (6 - given_up) * PRICE
    assert simulator.count() == 6
    assert_books_balance()


@needs_row_locks
@pytest.mark.parametrize("first", ["answer", "policy"])
def test_whoever_locks_an_unknown_task_first_decides_and_the_other_only_records(
    owner: makers.Owner, simulator: SimulatorProcess, first: str
) -> None:
    client_id, sending, answer, response = unknown_and_overdue(owner)
    _, lease = lease_of("unknown", client_id)
    verdict = dispatch.judge_answer(answer)
    answering: dict[str, Any] = {
        "sending": sending, "answer": answer, "verdict": verdict, "response": response, "now": db.now(),
    }  # fmt: skip
    concluding: dict[str, Any] = {
        "lease": lease, "provider": sending.provider, "match": None, "now": db.now(),
    }  # fmt: skip
    if first == "answer":
        held = Held(lambda: body_of(dispatch._record)(**answering))
        other = Call(lambda: unknowns.conclude(**concluding))
        other.wait_until_it_waits_for_a_lock()
        held.commit()
        with pytest.raises(StaleLease):
            other.result()
    else:
        held = Held(lambda: body_of(unknowns.conclude)(**concluding))
        other = Call(lambda: dispatch._record(**answering))
        other.wait_until_it_waits_for_a_lock()
        held.commit()
        other.result()
    (attempt,) = makers.attempts_of(owner, client_id)
    assert attempt.outcome == "accepted"
    makers.work()
    task = makers.task_of(owner, client_id)
    assert task.state == ("completed" if first == "answer" else "failed")
    assert task.result_file_id is not None
    assert owner.balance_micros == FULL - (PRICE if first == "answer" else 0)
    assert_books_balance()
