"""What staff may do to a task, each with a reason, through the same operations as everything else."""

from datetime import datetime
from uuid import UUID

from django.db.models import Q

from core import db
from core.errors import Invalid
from core.nudge import nudge
from videos.endings import Failure, fail, note_evidence
from videos.engine.binding import Bound, UpstreamJob, bind
from videos.engine.dispatch import send_again, tried
from videos.engine.verdicts import Fate, fate_of
from videos.errors import ActionRefused
from videos.locks import lock_task, not_before
from videos.models import Attempt, VideoTask
from videos.states import UNFINISHED, EvidenceKind, Outcome, State

MAX_UPSTREAM_ID = 128


def allowed_actions(task: VideoTask) -> dict[str, str]:
    """Action → empty when it is possible now, else one line that says why not."""
    final = "" if task.state in UNFINISHED else "The task has ended; final states never reopen."
    unknown = "" if task.state == State.UNKNOWN else "Only a task of unknown fate can be proven not received."
    bound = "It runs on a known job already." if task.state == State.PROCESSING else ""
    return {
        "adopt": final or bound,
        "never_received_resend": unknown,
        "never_received_refund": unknown,
        "fail_and_refund": final,
    }


@db.transaction
def adopt_upstream_id(*, task_id: UUID, upstream_id: str, actor: str, reason: str, now: datetime) -> Bound:
    """Bind an unfinished task to the provider's job that staff found. Raises: Invalid, ActionRefused."""
    _require_reason(reason)
    if not 1 <= len(upstream_id) <= MAX_UPSTREAM_ID or not upstream_id.isprintable():
        raise Invalid(field="upstream_id", limit="id_form")
    task = _lock(task_id, "adopt")
    now = not_before(task, now)
    attempt = (
        Attempt.objects.filter(task_id=task.pk, outcome__in=[Outcome.INFLIGHT, Outcome.UNCLEAR])
        .order_by("-number")
        .first()
    )
    if attempt is None:
        raise ActionRefused(reason="No attempt of this task is open, so nothing can have been taken.")
    job = UpstreamJob(
        upstream_id=upstream_id, source=actor, actor=actor, kind=EvidenceKind.PERSON, reason=reason
    )
    bound = bind(task=task, attempt=attempt, job=job, now=now)
    if bound == Bound.FOREIGN:
        raise ActionRefused(reason="This upstream id belongs to another task.")
    return bound


@db.transaction
def declare_never_received(*, task_id: UUID, resend: bool, actor: str, reason: str, now: datetime) -> None:
    """The provider confirmed that it never received an unknown task: send it again, or fail and refund it.

    Raises: Invalid, ActionRefused.
    """
    _require_reason(reason)
    task = _lock(task_id, "never_received_resend" if resend else "never_received_refund")
    now = not_before(task, now)
    Attempt.objects.filter(Q(outcome=Outcome.UNCLEAR) | Q(outcome=Outcome.INFLIGHT), task_id=task.pk).update(
        outcome=Outcome.NOT_SENT, reason="never_received", finished_at=now
    )
    if fate_of(tried(task.pk)) == Fate.RUNNING:
        raise ActionRefused(reason="An attempt of this task was accepted.")
    if resend:
        send_again(task=task, kind=EvidenceKind.PERSON, source=actor, actor=actor, reason=reason, now=now)
        nudge("videos.tasks.dispatch_due")
        return
    note_evidence(task_id=task.pk, kind=EvidenceKind.PERSON, source=actor, reason=reason, now=now)
    fail(task=task, failure=Failure(code="never_received"), cause="never_received", actor=actor, now=now)


@db.transaction
def fail_and_refund(*, task_id: UUID, actor: str, reason: str, now: datetime) -> None:
    """Close an unfinished task and give all its money back. Raises: Invalid, ActionRefused.

    A job that the provider may still finish is followed, and its video would be a gift.
    """
    _require_reason(reason)
    task = _lock(task_id, "fail_and_refund")
    now = not_before(task, now)
    note_evidence(task_id=task.pk, kind=EvidenceKind.PERSON, source=actor, reason=reason, now=now)
    fail(
        task=task, failure=Failure(code="closed_by_support"), cause="closed_by_support", actor=actor, now=now
    )
    Attempt.objects.filter(task_id=task.pk, outcome=Outcome.ACCEPTED).update(late_check_at=now)


def _lock(task_id: UUID, action: str) -> VideoTask:
    task = lock_task(task_id)
    if task is None:
        raise ActionRefused(reason="There is no such task any more.")
    if refusal := allowed_actions(task)[action]:
        raise ActionRefused(reason=refusal)
    return task


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise Invalid(field="reason", limit="required")
