"""Call-backs in many copies, against pollers, time limits and support."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from billing.models import Transfer
from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import race, race_to_success
from tests.concurrency.submissions import begin_sending, call_back, lease_of, send
from tests.simulator_process import SimulatorProcess
from videos import desk
from videos.engine import dispatch, polling, unknowns
from videos.models import OrphanJob, TaskEvent, WebhookCall
from videos.providers import registry
from videos.providers.base import Running
from videos.providers.registry import get_provider

pytestmark = [pytest.mark.django_db(transaction=True)]
PRICE = makers.PRICE_MICROS
FULL = 100_000_000


def close_by_support(owner: makers.Owner, client_id: str) -> None:
    task_id = makers.view(owner, client_id).claim.pk
    desk.fail_and_refund(task_id=task_id, actor="support", reason="asked for it", now=timezone.now())


def endings_of(owner: makers.Owner, client_id: str) -> int:
    task_id = makers.view(owner, client_id).claim.pk
    unfinished = ["submitting", "unknown", "processing"]
    return TaskEvent.objects.filter(
        task_id=task_id, from_state__in=unfinished, to_state__in=["completed", "failed"]
    ).count()


def refunds() -> int:
    return Transfer.objects.filter(kind="refund").count()


@pytest.mark.parametrize("fate", ["", " [sim: fail='out of order']"])
def test_two_pollers_two_webhooks_and_support_at_once_end_a_task_once(
    simulator: SimulatorProcess, fate: str
) -> None:
    owner = makers.make_owner()
    for _ in range(3):
        client_id = makers.submit(owner, prompt=f"a cat{fate}")
        dispatch.dispatch_due()
        makers.make_due()
        began = time.monotonic()
        outcomes = race(
            polling.poll_due,
            polling.poll_due,
            lambda client_id=client_id: call_back(owner, simulator, client_id, "ERROR").status_code,
            lambda client_id=client_id: call_back(owner, simulator, client_id, "ERROR").status_code,
            lambda client_id=client_id: close_by_support(owner, client_id),
        )
        assert outcomes[2:4] == [200, 200]
        assert time.monotonic() - began < 10
        makers.let_leases_run_out()
        makers.work()
        assert endings_of(owner, client_id) == 1
    assert refunds() == 3
    assert owner.balance_micros == FULL
    assert simulator.count() == 3
    assert_books_balance()


def test_the_time_limit_two_webhooks_a_late_answer_and_support_at_once_refund_once_or_run(
    simulator: SimulatorProcess,
) -> None:
    owner = makers.make_owner()
    for _ in range(3):
        client_id = makers.submit(owner, prompt="a cat [sim: lookup=never]")
        sending = begin_sending(client_id)
        answer, response = send(sending)
        _, lease = lease_of("dispatch", client_id)
        dispatch.begin_attempt(
            lease=lease, provider=sending.provider, deadline=sending.deadline, now=timezone.now()
        )
        makers.age([client_id], first_unclear_at=timedelta(hours=30), entered_state_at=timedelta(hours=30))
        makers.make_due()
        before = refunds()
        outcomes = race(
            unknowns.check_unknown_due,
            unknowns.check_unknown_due,
            lambda client_id=client_id: call_back(owner, simulator, client_id).status_code,
            lambda client_id=client_id: call_back(owner, simulator, client_id).status_code,
            lambda sending=sending, answer=answer, response=response: dispatch.record_answer(
                sending=sending, answer=answer, response=response
            ),
            lambda client_id=client_id: close_by_support(owner, client_id),
        )
        assert outcomes[2:4] == [200, 200]
        assert outcomes[4] is None
        makers.let_leases_run_out()
        makers.work()
        assert endings_of(owner, client_id) == 1
        assert makers.attempts_of(owner, client_id)[0].outcome == "accepted"
        state = makers.task_of(owner, client_id).state
        assert refunds() - before == (1 if state == "failed" else 0)
    assert owner.balance_micros == FULL - (3 - refunds()) * PRICE
    assert simulator.count() == 3
    assert_books_balance()


def test_a_webhook_during_a_read_makes_the_task_due_at_once_whatever_the_older_read_says(
    simulator: SimulatorProcess,
) -> None:
    owner = makers.make_owner()
    client_id = makers.submit(owner)
    dispatch.dispatch_due()
    under_way = polling.with_jobs([lease_of("poll", client_id)])
    assert call_back(owner, simulator, client_id).status_code == 200
    polling.record_readings(work=under_way, readings=[Running(progress=5)], provider=get_provider("fal"))
    task = makers.task_of(owner, client_id)
    assert task.next_check_at is not None and task.next_check_at <= timezone.now()
    assert polling.poll_due() == 1


def wait_for_calls(simulator: SimulatorProcess, number: int) -> list[dict[str, Any]]:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        deliveries = simulator.deliveries()
        if len(deliveries) >= number and all(item["ended_at"] for item in deliveries):
            return deliveries
        time.sleep(0.05)
    raise AssertionError(f"not all calls were made: {simulator.deliveries()}")


@pytest.mark.parametrize("manner", ["webhook_concurrent", "webhook_interval=0.02"])
def test_ten_copies_of_a_webhook_are_all_accepted_and_change_the_task_once_c42(
    simulator: SimulatorProcess,
    live_server: Any,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    manner: str,
) -> None:
    # The caller keeps its connections alive, and so the server's threads; theirs to the database must end.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    settings.PUBLIC_BASE_URL = live_server.url
    registry.clear()
    owner = makers.make_owner()
    client_id = makers.submit(owner, prompt=f"a cat [sim: webhook_copies=10; {manner}]")
    dispatch.dispatch_due()
    deliveries = wait_for_calls(simulator, 10)
    assert [item["last_status"] for item in deliveries] == [200] * 10
    assert WebhookCall.objects.get().calls == 10
    makers.work()
    assert makers.task_of(owner, client_id).state == "completed"
    assert endings_of(owner, client_id) == 1
    assert owner.balance_micros == FULL - PRICE
    assert_books_balance()


def test_five_copies_at_the_same_moment_for_an_unclear_attempt_bind_it_once_c42(
    simulator: SimulatorProcess,
) -> None:
    owner = makers.make_owner()
    client_id = makers.submit(owner, prompt="a cat [sim: drop_after_accept]")
    dispatch.dispatch_due()
    assert makers.task_of(owner, client_id).state == "unknown"
    answers = race(*[lambda: call_back(owner, simulator, client_id).status_code] * 5)
    assert answers == [200] * 5
    assert WebhookCall.objects.get().calls == 5
    race_to_success(unknowns.confirm_calls_due, unknowns.confirm_calls_due)
    events = TaskEvent.objects.filter(task_id=makers.view(owner, client_id).claim.pk)
    assert [event.to_state for event in events.order_by("created_at")].count("processing") == 1
    makers.work()
    assert makers.task_of(owner, client_id).state == "completed"
    assert simulator.count() == 1
    assert owner.balance_micros == FULL - PRICE
    assert_books_balance()


def test_a_job_that_ran_although_staff_declared_it_never_received_is_an_orphan_and_an_alarm(
    simulator: SimulatorProcess,
) -> None:
    """The call-back names it when the task runs on its second job, and no attempt is open any more."""
    owner = makers.make_owner()
    client_id = makers.submit(owner, prompt="a cat [sim: drop_after_accept lookup=never webhook_none]")
    dispatch.dispatch_due()
    task_id, (job,) = makers.task_of(owner, client_id).pk, simulator.jobs()
    desk.declare_never_received(
        task_id=task_id, resend=False, actor="ann", reason="they said so", now=timezone.now()
    )
    assert call_back(owner, simulator, client_id).status_code == 200
    unknowns.confirm_calls_due()
    orphan = OrphanJob.objects.get()
    assert (orphan.task_id, orphan.upstream_id) == (task_id, job["request_id"])
    assert makers.task_of(owner, client_id).state == "failed"
    assert (refunds(), owner.balance_micros) == (1, FULL)
    call = WebhookCall.objects.get()
    assert (call.tries, call.check_at) == (1, None)
    unknowns.confirm_calls_due()
    assert OrphanJob.objects.count() == 1
