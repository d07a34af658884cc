"""Jobs that succeed after their task was refunded: nothing is charged, and the video is a gift."""

import asyncio
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import structlog
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings

from core import db
from core.http import ReadClient
from files import operations as files
from tombstones.models import Claim, ClaimState
from videos.endings import Overtaken, note_event, note_evidence
from videos.engine.dispatch import PROVIDER
from videos.engine.leases import Lease
from videos.engine.polling import RunningTask, job_of, read_status
from videos.engine.results import Fetched, fetch, publish_file
from videos.locks import lock_task
from videos.models import Attempt, VideoTask
from videos.providers.base import Cancelled, Provider, ProviderFailed, Succeeded
from videos.providers.registry import get_provider, provider_names
from videos.states import EvidenceKind, State

log = structlog.get_logger(__name__)

FOLLOWED_AT_ONCE = 4
FOLLOW_AGAIN = timedelta(seconds=30)
FOLLOW_FOR = timedelta(days=2)  # longer than any provider keeps a result


@db.durable
def follow_late_jobs() -> int:
    """Read the jobs of refunded tasks that are due; how many."""
    followed = 0
    for name in provider_names():
        attempts = _take(name)
        followed += len(attempts)
        if attempts:
            async_to_sync(_follow_all)(attempts, get_provider(name))
    return followed


def _take(provider: str) -> list[Attempt]:
    """Take due attempts by moving their time; two workers that take the same one only read twice."""
    now = db.now()
    attempts = list(Attempt.objects.filter(provider=provider, late_check_at__lte=now)[:FOLLOWED_AT_ONCE])
    until = now + timedelta(seconds=settings.LEASE_SECONDS)
    return [
        attempt
        for attempt in attempts
        if Attempt.objects.filter(pk=attempt.pk, late_check_at=attempt.late_check_at).update(
            late_check_at=until
        )
    ]


async def _follow_all(attempts: list[Attempt], provider: Provider) -> None:
    async with ReadClient(total_seconds=20.0) as client:
        ended = await asyncio.gather(
            *(_follow(attempt, provider, client) for attempt in attempts), return_exceptions=True
        )
    for failure in ended:
        if failure is not None:
            raise failure


async def _follow(attempt: Attempt, provider: Provider, client: ReadClient) -> None:
    task = await VideoTask.objects.filter(pk=attempt.task_id).afirst()
    now = await sync_to_async(db.now)()
    if task is None:
        await sync_to_async(_stop)(attempt)
        return
    job = job_of(attempt)
    reading = await read_status(provider.status(job), provider, client)
    if isinstance(reading, Succeeded):
        lease = Lease(
            task_id=task.pk, token=uuid4(), until=now
        )  # nothing is decided by it: the task is final
        item = RunningTask(task=task, lease=lease, attempt=attempt, job=job)
        outcome = await fetch(item=item, provider=provider, client=client)
        if isinstance(outcome, Fetched):
            await sync_to_async(_give)(attempt, outcome)
            return
        if isinstance(outcome, ProviderFailed):
            await sync_to_async(_stop)(attempt)
            return
    elif isinstance(reading, ProviderFailed | Cancelled):
        await sync_to_async(_stop)(attempt)
        return
    await sync_to_async(_come_back)(attempt, now)


def _give(attempt: Attempt, fetched: Fetched) -> None:
    now = db.now()
    try:
        give(attempt_id=attempt.pk, task_id=attempt.task_id, fetched=fetched, now=now)
    except Overtaken as overtaken:
        log.info("late_result_not_given", task_id=str(attempt.task_id), reason=str(overtaken))
        files.discard_key(key=fetched.key, now=now)
        _stop(attempt)


@db.transaction
def give(*, attempt_id: UUID, task_id: UUID, fetched: Fetched, now: datetime) -> None:
    """Put a late video into the owner's cloud space at no charge. Raises: Overtaken, after burial above
    all.
    """
    task = lock_task(task_id)
    claim = Claim.objects.select_for_update().filter(pk=task_id, state=ClaimState.LIVE).first()
    if task is None or claim is None or task.state != State.FAILED or task.result_file_id is not None:
        raise Overtaken("nobody to give it to")
    file_id = publish_file(task=task, fetched=fetched, now=now)
    VideoTask.objects.filter(pk=task.pk).update(result_file_id=file_id)
    Attempt.objects.filter(pk=attempt_id).update(late_check_at=None)
    note_evidence(
        task_id=task.pk, attempt_id=attempt_id, kind=EvidenceKind.LATE_RESULT, source=PROVIDER, now=now
    )
    note_event(task=task, to=task.state, cause="late_result_given", actor=PROVIDER, now=now)


@db.transaction
def _stop(attempt: Attempt) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(late_check_at=None)


@db.transaction
def _come_back(attempt: Attempt, now: datetime) -> None:
    too_old = now - attempt.started_at > FOLLOW_FOR
    Attempt.objects.filter(pk=attempt.pk, late_check_at__isnull=False).update(
        late_check_at=None if too_old else now + FOLLOW_AGAIN
    )
