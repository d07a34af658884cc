"""Taking due work from the database: each row by one worker at a time, and by the next when that one dies."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.db.models import Q, QuerySet

from core import db
from videos.locks import lock_task
from videos.models import VideoTask
from videos.states import Phase, State

# Note [Leases]
# Taking a task moves its `next_check_at` to the end of the lease, so "due" is one indexed comparison and a
# dead worker's tasks become due by themselves. A lease fences decisions: whoever holds an older token changes
# no task. It never fences evidence: a late answer is always recorded on its own attempt.


class StaleLease(Exception):
    """Another worker has taken the task since; the caller decides nothing any more."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to decide about one task until `until` or until somebody else has a newer token."""

    task_id: UUID
    token: UUID
    until: datetime


WORK = {
    "dispatch": Q(state=State.SUBMITTING),
    "unknown": Q(state=State.UNKNOWN),
    "poll": Q(state=State.PROCESSING) & (Q(phase__isnull=True) | ~Q(phase=Phase.STORING)),
    "store": Q(state=State.PROCESSING, phase=Phase.STORING),
}


def due(*, work: str, provider: str, now: datetime) -> QuerySet[VideoTask]:
    return VideoTask.objects.filter(WORK[work], provider=provider, next_check_at__lte=now)


def take_due(*, work: str, provider: str, limit: int) -> list[tuple[VideoTask, Lease]]:
    """Take up to `limit` due tasks of one kind of work, oldest first; rows that others hold are skipped."""
    now = db.now()
    # A look without a lock first: on SQLite even an empty transaction would wait for the only writer.
    if not due(work=work, provider=provider, now=now).exists():
        return []
    return _take(work, provider, limit, now)


@db.transaction
def _take(work: str, provider: str, limit: int, now: datetime) -> list[tuple[VideoTask, Lease]]:
    tasks = list(
        due(work=work, provider=provider, now=now)
        .select_for_update(skip_locked=True)
        .order_by("next_check_at")[:limit]
    )
    token, until = uuid4(), now + timedelta(seconds=settings.LEASE_SECONDS)
    VideoTask.objects.filter(pk__in=[task.pk for task in tasks]).update(
        lease_token=token, lease_until=until, next_check_at=until
    )
    for task in tasks:
        task.lease_token, task.lease_until, task.next_check_at = token, until, until
    return [(task, Lease(task_id=task.pk, token=token, until=until)) for task in tasks]


@db.transaction
def renew(lease: Lease) -> bool:
    """Hold a lease for its full length from now on; False when somebody else has the task since."""
    until = db.now() + timedelta(seconds=settings.LEASE_SECONDS)
    held = VideoTask.objects.filter(pk=lease.task_id, lease_token=lease.token)
    return bool(held.update(lease_until=until, next_check_at=until))


@db.transaction_required
def lock_leased(lease: Lease) -> VideoTask:
    """Lock the task of a lease. Raises: StaleLease when the lease is no longer the newest, or the task
    ended.
    """
    task = lock_task(lease.task_id)
    if task is None or task.lease_token != lease.token:
        raise StaleLease(str(lease.task_id))
    return task
