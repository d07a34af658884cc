"""A task ends once: completion, failure, deletion and support at the same moment, with old leases about."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone

from billing.models import Resolution, Transfer
from core import db
from core.http import ReadClient
from files.models import StoredFile, StoredObject
from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    Call,
    Held,
    body_of,
    kinds_of,
    race,
    race_to_success,
    run_sql,
    scratch_tables,
)
from tests.concurrency.submissions import lease_of, states_of, submit_many
from tests.simulator_process import SimulatorProcess
from videos import deletion, desk
from videos.endings import Overtaken
from videos.engine import dispatch, polling, results
from videos.engine.leases import StaleLease, take_due
from videos.errors import ActionRefused, NotDeletable
from videos.models import TaskEvent, VideoTask
from videos.providers.base import ProviderFailed, Waiting
from videos.providers.registry import get_provider
from videos.states import State

pytestmark = [pytest.mark.django_db(transaction=True)]
needs_row_locks = pytest.mark.postgresql
PRICE = makers.PRICE_MICROS
FULL = 1_000_000_000


@pytest.fixture
def owner() -> makers.Owner:
    return makers.make_owner(balance="1000")


def running_tasks(owner: makers.Owner, number: int, **fields: Any) -> list[str]:
    ids = submit_many(owner, number, **fields)
    dispatch.dispatch_due()
    assert set(states_of(owner, ids)) == {"processing"}
    return ids


def ready_to_publish(owner: makers.Owner) -> tuple[str, Any, Any]:
    """A running task whose video is already in our storage, under a pending key."""
    (client_id,) = running_tasks(owner, 1)
    makers.make_due()
    polling.poll_due()
    task, lease = lease_of("store", client_id)
    (item,) = polling.with_jobs([(task, lease)])
    provider = get_provider(task.provider)

    async def fetch() -> Any:
        async with ReadClient(total_seconds=20.0) as client:
            return await results.fetch(item=item, provider=provider, client=client)

    fetched = async_to_sync(fetch)()
    assert isinstance(fetched, results.Fetched)
    return client_id, item, fetched


def publish(item: Any, fetched: Any) -> None:
    results.record_outcome(item=item, outcome=fetched, provider=get_provider(item.task.provider))


@needs_row_locks
def test_a_deletion_that_waits_for_the_completion_deletes_a_settled_task(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id, item, fetched = ready_to_publish(owner)
    held = Held(lambda: body_of(results.publish)(item=item, fetched=fetched, now=db.now()))
    deleter = Call(lambda: deletion.delete_task(owner_id=owner.id, client_id=client_id, now=timezone.now()))
    deleter.wait_until_it_waits_for_a_lock()
    held.commit()
    deleter.result()
    assert makers.view(owner, client_id).is_buried
    assert (VideoTask.objects.count(), StoredFile.objects.count()) == (0, 0)
    assert StoredObject.objects.get().state == "dead"
    assert Resolution.objects.get().outcome == "settled"
    assert owner.balance_micros == FULL - PRICE
    assert_books_balance()


def test_of_completion_and_deletion_at_once_the_money_is_settled_once(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    for _ in range(5):
        client_id, item, fetched = ready_to_publish(owner)

        def delete(client_id: str = client_id) -> None:
            deletion.delete_task(owner_id=owner.id, client_id=client_id, now=timezone.now())

        outcomes = race(lambda item=item, fetched=fetched: publish(item, fetched), delete)
        assert outcomes[0] is None
        view = makers.view(owner, client_id)
        if isinstance(outcomes[1], NotDeletable):
            assert view.task is not None and view.task.state == "completed"
        else:
            assert outcomes[1] is None and view.is_buried
    assert Transfer.objects.filter(kind="settle").count() == 5
    assert owner.balance_micros == FULL - 5 * PRICE
    assert_books_balance()


def test_of_support_and_completion_at_once_one_ends_the_task(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    refunds = 0
    for _ in range(6):
        client_id, item, fetched = ready_to_publish(owner)
        task_id = item.task.pk

        def refund(task_id: Any = task_id) -> None:
            desk.fail_and_refund(task_id=task_id, actor="support", reason="asked", now=timezone.now())

        outcomes = race(lambda item=item, fetched=fetched: publish(item, fetched), refund)
        assert outcomes[0] is None
        task = makers.task_of(owner, client_id)
        if isinstance(outcomes[1], ActionRefused):
            assert task.state == "completed"
        else:
            assert outcomes[1] is None and (task.state, task.error_code) == ("failed", "closed_by_support")
            refunds += 1
        finals = TaskEvent.objects.filter(task_id=task_id, to_state__in=["completed", "failed"])
        assert finals.count() == 1
    assert owner.balance_micros == FULL - (6 - refunds) * PRICE
    assert StoredObject.objects.filter(state="dead").count() == refunds
    assert_books_balance()


def test_a_stale_failure_does_not_end_a_task_that_the_newer_lease_completes(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    (client_id,) = running_tasks(owner, 1)
    stale = polling.with_jobs([lease_of("poll", client_id)])
    failed = ProviderFailed(code="provider_failed", detail="")
    makers.let_leases_run_out()
    makers.make_due()
    polling.poll_due()
    _, lease = lease_of("store", client_id)
    assert lease.token != stale[0].lease.token

    def fail_late() -> None:
        polling.record_readings(work=stale, readings=[failed], provider=get_provider("fal"))

    race_to_success(fail_late, fail_late, results.store_due)
    makers.let_leases_run_out()
    makers.work()
    assert makers.task_of(owner, client_id).state == "completed"
    assert Transfer.objects.filter(kind="refund").count() == 0
    assert owner.balance_micros == FULL - PRICE
    assert_books_balance()


@needs_row_locks
def test_without_a_compare_and_swap_two_pollers_refund_twice() -> None:
    with scratch_tables(
        "CREATE TABLE scratch_task (state text, balance int)",
        "INSERT INTO scratch_task VALUES ('processing', 0)",
    ):

        def refund_what_was_read() -> None:
            (state,) = run_sql("SELECT state FROM scratch_task")[0]
            if state == "processing":
                run_sql("UPDATE scratch_task SET state = 'failed', balance = balance + 10")

        def refund_in_a_transaction() -> None:
            with transaction.atomic():
                refund_what_was_read()

        first = Held(refund_what_was_read)
        second = Call(refund_in_a_transaction)
        second.wait_until_it_waits_for_a_lock()
        first.commit()
        second.result()
        assert run_sql("SELECT balance FROM scratch_task") == [(20,)]


def test_without_the_lease_token_a_sleeper_decides_about_what_another_has_taken(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    """The guard removed: judging by state alone, a reading made under an old lease moves the task."""
    (client_id,) = running_tasks(owner, 1)
    old = polling.with_jobs([lease_of("poll", client_id)])[0]
    new_task, new = lease_of("poll", client_id)
    by_state_alone = VideoTask.objects.filter(pk=new_task.pk, state=State.PROCESSING)
    assert by_state_alone.update(next_check_at=db.now()) == 1  # without the token it goes through
    with pytest.raises(StaleLease):
        polling.start_storing(item=old, now=db.now())
    waiting = [Waiting(queue_position=7)]
    polling.record_readings(work=[old], readings=waiting, provider=get_provider("fal"))
    task = makers.task_of(owner, client_id)
    assert (task.queue_position, task.lease_token) == (0, new.token)


def test_two_workers_that_both_read_a_failure_refund_once(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    ids = running_tasks(owner, 5)
    failed = [ProviderFailed(code="provider_failed", detail="")] * 5
    first = polling.with_jobs(take_all("poll"))
    makers.let_leases_run_out()
    second = polling.with_jobs(take_all("poll"))
    provider = get_provider("fal")
    race_to_success(
        lambda: polling.record_readings(work=first, readings=failed, provider=provider),
        lambda: polling.record_readings(work=second, readings=failed, provider=provider),
        lambda: polling.record_readings(work=second, readings=failed, provider=provider),
    )
    assert states_of(owner, ids) == ["failed"] * 5
    assert Transfer.objects.filter(kind="refund").count() == 5
    assert owner.balance_micros == FULL
    assert_books_balance()


def take_all(work: str) -> list[Any]:
    makers.make_due()
    taken = take_due(work=work, provider="fal", limit=1000)
    assert len(taken) == 5
    return taken


@needs_row_locks
def test_a_refund_of_an_ended_task_is_overtaken_and_moves_nothing(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id, item, fetched = ready_to_publish(owner)
    held = Held(
        lambda: body_of(desk.fail_and_refund)(
            task_id=item.task.pk, actor="support", reason="asked", now=timezone.now()
        )
    )
    publisher = Call(lambda: results.publish(item=item, fetched=fetched, now=db.now()))
    publisher.wait_until_it_waits_for_a_lock()
    held.commit()
    with pytest.raises((StaleLease, Overtaken)):
        publisher.result()
    assert kinds_of(race(lambda: publish(item, fetched))) == ["ok"]  # the late worker only logs it
    assert makers.task_of(owner, client_id).state == "failed"
    assert owner.balance_micros == FULL
    assert_books_balance()
