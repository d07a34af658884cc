"""A wish to cancel that came while an attempt was on its way, and the attempt turns out as never executed."""

from typing import Any

import pytest
from django.utils import timezone

from core.http import NotSent
from tests import makers
from tests.cases.evidence import kinds_of, state_of
from tests.concurrency.submissions import begin_sending
from tests.makers import Owner
from videos import desk, operations
from videos.engine import dispatch
from videos.engine.leases import take_due
from videos.providers.base import Rejected, Throttled, Unclear

pytestmark = pytest.mark.django_db
NOT_EXECUTED = [NotSent("refused"), Throttled(retry_after_seconds=60)]


def cancel(owner: Owner, client_id: str) -> bool:
    return operations.cancel(owner_id=owner.id, client_id=client_id, now=timezone.now()).is_done


def assert_cancelled_unsent(owner: Owner, client_id: str, simulator: Any) -> None:
    assert state_of(owner, client_id) == ("failed", "refunded", "cancelled")
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    assert owner.balance_micros == 100_000_000
    makers.work()
    assert (simulator.posts(), simulator.count()) == (0, 0)
    assert len(makers.attempts_of(owner, client_id)) == 1


@pytest.mark.parametrize("answer", NOT_EXECUTED, ids=["not sent", "throttled"])
def test_a_cancelled_task_whose_attempt_was_not_executed_is_refunded_and_not_sent_again(
    owner: Owner, simulator: Any, answer: Any
) -> None:
    client_id = makers.submit(owner)
    sending = begin_sending(client_id)
    assert cancel(owner, client_id) is False
    dispatch.record_answer(sending=sending, answer=answer, response=None)
    assert_cancelled_unsent(owner, client_id, simulator)


def test_a_cancelled_unknown_task_that_is_proven_not_executed_is_refunded_and_not_sent_again(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner)
    sending = begin_sending(client_id)
    dispatch.record_answer(sending=sending, answer=Unclear(reason="timeout"), response=None)
    assert cancel(owner, client_id) is False
    dispatch.record_answer(sending=sending, answer=NotSent("refused"), response=None)
    makers.work_once()
    assert_cancelled_unsent(owner, client_id, simulator)


def test_a_cancelled_unknown_task_that_staff_declare_never_received_is_refunded_and_not_sent_again(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner)
    sending = begin_sending(client_id)
    dispatch.record_answer(sending=sending, answer=Unclear(reason="timeout"), response=None)
    assert cancel(owner, client_id) is False
    task_id = makers.task_of(owner, client_id).pk
    desk.declare_never_received(
        task_id=task_id, resend=True, actor="ann", reason="said so", now=timezone.now()
    )
    assert_cancelled_unsent(owner, client_id, simulator)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_an_answer_that_came_after_its_lease_is_heeded_by_the_next_sender(
    owner: Owner, simulator: Any, is_cancelled: bool
) -> None:
    """The next worker holds the lease already, and has not begun when the old one's answer is recorded."""
    client_id = makers.submit(owner)
    sending = begin_sending(client_id)
    if is_cancelled:
        assert cancel(owner, client_id) is False
    makers.let_leases_run_out()
    provider, deadline = sending.provider, sending.deadline
    (taken,) = take_due(work="dispatch", provider=provider.name, limit=1)
    answer = NotSent("refused") if is_cancelled else Rejected(code="prompt_refused", detail="no")
    dispatch.record_answer(sending=sending, answer=answer, response=None)
    begun = dispatch.begin_attempt(lease=taken[1], provider=provider, deadline=deadline, now=timezone.now())
    assert begun is None
    code = "cancelled" if is_cancelled else "prompt_refused"
    assert state_of(owner, client_id) == ("failed", "refunded", code)
    assert len(makers.attempts_of(owner, client_id)) == 1
    assert simulator.posts() == 0
