"""Binding a task to the provider's job: by the submit answer, a call-back, a look-up or a person."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import structlog
from django.conf import settings
from django.db.models import Q

from core import db
from videos.endings import change_state, note_evidence
from videos.models import Attempt, OrphanJob, VideoTask
from videos.states import EvidenceKind, Outcome, Phase, State

log = structlog.get_logger(__name__)


class Bound(StrEnum):
    """What became of a job's id."""

    BOUND = "bound"  # the task runs on it now
    ALREADY = "already"  # it was bound before
    LATE = "late"  # the task has ended; the job is followed, and its video is a gift
    SECOND = "second"  # the task has another job: an orphan, our loss, never a charge
    FOREIGN = "foreign"  # the job belongs to another task


@dataclass(frozen=True, kw_only=True)
class UpstreamJob:
    """A job as it became known. `kind` None: by the answer to the submit itself."""

    upstream_id: str
    source: str
    actor: str
    handles: Mapping[str, str] = field(default_factory=dict)
    queue_position: int | None = None
    kind: EvidenceKind | None = None
    reason: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)  # columns of the attempt that the answer fills


@db.transaction_required
def bind(*, task: VideoTask | None, attempt: Attempt, job: UpstreamJob, now: datetime) -> Bound:
    """Record a job on its attempt and let its task run on it; the task's row is locked by the caller.

    Evidence is recorded whatever the task's state; the state changes only from `submitting` or `unknown`.
    """
    holder = Attempt.objects.filter(
        provider_account=attempt.provider_account, upstream_id=job.upstream_id
    ).first()
    if holder is not None and holder.task_id == attempt.task_id:
        _close_as_unclear(attempt, job, now)
        _keep_answer(attempt, job)
        return Bound.ALREADY
    if holder is not None:
        _close_as_unclear(attempt, job, now)
        log.error("upstream_id_of_another_task", task_id=str(attempt.task_id), holder=str(holder.task_id))
        return Bound.FOREIGN
    if Attempt.objects.filter(task_id=attempt.task_id, outcome=Outcome.ACCEPTED).exists():
        _note_orphan(attempt, job, now)
        return Bound.SECOND
    accepted = Attempt.objects.filter(pk=attempt.pk, outcome__in=[Outcome.INFLIGHT, Outcome.UNCLEAR]).update(
        outcome=Outcome.ACCEPTED,
        upstream_id=job.upstream_id,
        handles=dict(job.handles) if task is not None else {},  # after burial only id, status and hashes
        finished_at=now,
        **{"reason": "", **job.answer},
    )
    if not accepted:
        _note_orphan(attempt, job, now)
        return Bound.SECOND
    return _start(task=task, attempt=attempt, job=job, now=now)


def _start(*, task: VideoTask | None, attempt: Attempt, job: UpstreamJob, now: datetime) -> Bound:
    kind = job.kind
    if task is not None and task.state == State.UNKNOWN and kind is None:
        kind = EvidenceKind.LATE_ANSWER
    if kind is not None:
        note_evidence(
            task_id=attempt.task_id,
            attempt_id=attempt.pk,
            kind=kind,
            source=job.source,
            upstream_id=job.upstream_id,
            reason=job.reason,
            now=now,
        )
    if task is None:
        return Bound.LATE
    if task.state not in (State.SUBMITTING, State.UNKNOWN):
        Attempt.objects.filter(pk=attempt.pk).update(late_check_at=now)
        return Bound.LATE
    change_state(
        task=task,
        to=State.PROCESSING,
        cause=kind or "accepted",
        actor=job.actor,
        now=now,
        accepted_at=now,
        next_check_at=now + timedelta(seconds=settings.FIRST_POLL_SECONDS),
        phase=None if job.queue_position is None else Phase.QUEUED,
        queue_position=job.queue_position,
        tries=0,
        first_try_at=None,
        wait_reason=None,
    )
    return Bound.BOUND


def _close_as_unclear(attempt: Attempt, job: UpstreamJob, now: datetime) -> None:
    """An attempt whose answer named a job that is not its own stays unclear; it is in flight no more."""
    Attempt.objects.filter(~Q(upstream_id=job.upstream_id), pk=attempt.pk, outcome=Outcome.INFLIGHT).update(
        outcome=Outcome.UNCLEAR, reason="job_already_known", finished_at=now, **job.answer
    )


def _keep_answer(attempt: Attempt, job: UpstreamJob) -> None:
    """The submit's own answer, after a call-back or the list had bound the job: what it told is kept."""
    if job.answer:
        Attempt.objects.filter(pk=attempt.pk, upstream_id=job.upstream_id, http_status__isnull=True).update(
            **job.answer
        )


def _note_orphan(attempt: Attempt, job: UpstreamJob, now: datetime) -> None:
    """Record a second job of a task, once, and ring the alarm. No charge ever follows from it."""
    Attempt.objects.filter(pk=attempt.pk, outcome=Outcome.INFLIGHT).update(
        **{**job.answer, "outcome": Outcome.UNCLEAR, "reason": "second_job", "finished_at": now}
    )
    known = OrphanJob.objects.filter(
        provider_account=attempt.provider_account, upstream_id=job.upstream_id
    ).exists()
    if known:
        return
    OrphanJob.objects.create(
        provider_account=attempt.provider_account,
        upstream_id=job.upstream_id,
        task_id=attempt.task_id,
        source=job.source,
        created_at=now,
    )
    note_evidence(
        task_id=attempt.task_id,
        attempt_id=attempt.pk,
        kind=EvidenceKind.SECOND_JOB,
        source=job.source,
        upstream_id=job.upstream_id,
        now=now,
    )
    log.error("second_job_of_a_task", task_id=str(attempt.task_id), upstream_id=job.upstream_id)
