"""Bugs that people really write, laid over the product in a struck process, to see that they are caught.

Each is installed by a function of this table before the process is watched; see docs/seeded-bugs.md.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from billing import operations as billing
from core import db, nudge
from core.http import AnswerLost, Deadline
from core.statements import insert
from tests.crash.effects import put_over
from tombstones import operations as tombstones
from tombstones.models import Claim
from videos import operations
from videos.endings import Failure, change_state
from videos.engine import dispatch, polling, results, unknowns
from videos.engine.leases import Lease, StaleLease, lock_leased
from videos.engine.polling import RunningTask
from videos.engine.verdicts import Verdict, judge_answer
from videos.locks import lock_task
from videos.models import VideoTask
from videos.states import Outcome, State


def message_before_commit() -> None:
    """The bell rings at once: a worker may look before there is anything to see, or for what is undone."""

    def ring_now(task: str, **ids: Any) -> None:
        nudge.doorbell.ring(task, ids)

    for module in (nudge, operations, polling):  # imported there by name
        put_over(module, "nudge", lambda _: ring_now)


def no_deadline_check() -> None:
    """A sender that slept through its lease sends all the same."""
    put_over(Deadline, "passed", lambda _: property(lambda self: False))


def timeout_taken_for_failure() -> None:
    """No answer is read as "it failed": the money goes back, and the provider has the job."""

    def judge_too_soon(answer: Any) -> Verdict:
        if isinstance(answer, AnswerLost):
            return Verdict(outcome=Outcome.REJECTED, reason="provider_failed")
        return judge_answer(answer)

    put_over(dispatch, "judge_answer", lambda _: judge_too_soon)


def refund_in_its_own_transaction() -> None:
    """The money goes back in one transaction and the task fails in the next."""

    def fail(item: RunningTask, failure: Failure, now: datetime, *, is_followed: bool = False) -> None:
        with transaction.atomic():
            lock_leased(item.lease)
            billing.refund(charge_id=item.task.pk, cause=failure.code, actor=dispatch.PROVIDER, now=now)
        with transaction.atomic():
            change_state(
                task=lock_leased(item.lease),
                to=State.FAILED,
                cause=failure.cause,
                actor=dispatch.PROVIDER,
                now=now,
                finished_at=now,
                next_check_at=None,
                error_code=failure.code,
            )

    put_over(polling, "_fail", lambda _: fail)


def claim_after_task() -> None:
    """The id is looked up first, and claimed when the task is there."""
    insert_task = operations._insert_task

    def look_up(*, claim_id: UUID, owner_id: UUID, client_id: str, now: datetime) -> Claim:
        if Claim.objects.filter(owner_id=owner_id, client_id=client_id).exists():
            raise tombstones.AlreadyClaimed(client_id)
        return Claim(id=claim_id, owner_id=owner_id, client_id=client_id, created_at=now)

    def insert_task_then_claim(*, claim: Claim, **rest: Any) -> VideoTask:
        task = insert_task(claim=claim, **rest)
        insert(claim)
        return task

    put_over(tombstones, "insert_claim", lambda _: look_up)
    put_over(operations, "_insert_task", lambda _: insert_task_then_claim)


def stale_lease_decides() -> None:
    """Whoever once had the task's lease may decide about it."""

    def lock_whoever_holds_it(lease: Lease) -> VideoTask:
        task = lock_task(lease.task_id)
        if task is None:
            raise StaleLease(str(lease.task_id))
        return task

    for module in (dispatch, polling, results, unknowns):
        put_over(module, "lock_leased", lambda _: lock_whoever_holds_it)


def answer_recorded_once() -> None:
    """Not one of the six: what a provider answered is written once, and lost when the database is away."""
    put_over(db, "run_until_saved", lambda _: lambda function: function())


BUGS: dict[str, Callable[[], None]] = {
    "message before commit": message_before_commit,
    "no deadline check": no_deadline_check,
    "timeout taken for failure": timeout_taken_for_failure,
    "refund in a second transaction": refund_in_its_own_transaction,
    "claim after task": claim_after_task,
    "stale lease decides": stale_lease_decides,
    "answer recorded once": answer_recorded_once,
}
