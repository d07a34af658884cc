"""Reading the status of running jobs: taken in bulk, read concurrently, written in bulk where nothing
changed.

A failed read is a failed read and never a failed task.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import structlog
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db.models import UUIDField

from core import db
from core.http import HttpRequest, ReadClient, ReadFailed
from core.nudge import nudge
from core.statements import CompiledUpdate, Parameter
from videos.catalogue import get_model
from videos.endings import Failure, Overtaken, fail
from videos.engine import alarms
from videos.engine.dispatch import PROVIDER
from videos.engine.leases import Lease, StaleLease, lock_leased, take_due
from videos.engine.pauses import LONGEST_TOLD_SECONDS, next_read_in
from videos.models import Attempt, VideoTask
from videos.providers.base import (
    AccountTrouble,
    AlreadyCompleted,
    Cancelled,
    CancelNotFound,
    CancelRequested,
    Job,
    NotFound,
    Provider,
    ProviderFailed,
    ReadTrouble,
    Running,
    StatusReading,
    Succeeded,
    UnseenWord,
    Waiting,
)
from videos.providers.registry import get_provider, provider_names
from videos.states import Outcome, Phase

log = structlog.get_logger(__name__)

READ_AT_ONCE = 100  # status reads in flight of one run
# A status takes milliseconds, and the pool looks at all its connections for every request.
READ_CONNECTIONS = 32
READ_SECONDS = 20.0  # well within a lease, so that a hanging provider cannot outlive it
LONGEST_NOT_FOUND_SECONDS = 300.0  # an id the provider does not know is asked for ever more rarely
MAX_UPSTREAM_QUEUE = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class RunningTask:
    """A leased task with the job it runs on."""

    task: VideoTask
    lease: Lease
    attempt: Attempt
    job: Job


@db.durable
def poll_due() -> int:
    """Read what is due, provider after provider; how many tasks were read."""
    return sum(poll_provider(name) for name in provider_names())


@db.durable
def poll_provider(name: str) -> int:
    """Read a provider's due jobs once over; how many."""
    work = with_jobs(take_due(work="poll", provider=name, limit=READ_AT_ONCE))
    if work:
        async_to_sync(_read_all)(work, get_provider(name))
    return len(work)


def with_jobs(taken: Sequence[tuple[VideoTask, Lease]]) -> list[RunningTask]:
    """Add the accepted attempt to each leased task, in one query."""
    attempts = {
        attempt.task_id: attempt
        for attempt in Attempt.objects.filter(
            task_id__in=[task.pk for task, _ in taken], outcome=Outcome.ACCEPTED
        )
    }
    return [
        RunningTask(task=task, lease=lease, attempt=attempts[task.pk], job=job_of(attempts[task.pk]))
        for task, lease in taken
        if task.pk in attempts
    ]


def job_of(attempt: Attempt) -> Job:
    spec = get_model(attempt.model)
    return Job(
        upstream_id=str(attempt.upstream_id),
        endpoint=spec.endpoint if spec else attempt.model,
        handles=attempt.handles,
    )


async def _read_all(work: list[RunningTask], provider: Provider) -> None:
    async with ReadClient(total_seconds=READ_SECONDS, max_connections=READ_CONNECTIONS) as client:
        readings = await asyncio.gather(*(_read_one(item, provider, client) for item in work))
    await sync_to_async(record_readings)(work=work, readings=readings, provider=provider)


async def _read_one(item: RunningTask, provider: Provider, client: ReadClient) -> StatusReading:
    try:
        if item.task.cancel_requested_at is not None and item.task.cancel_sent_at is None:
            await _ask_to_stop(item, provider, client)
        return await read_status(provider.status(item.job), provider, client)
    except Exception as defect:  # whatever it is, it concerns this job alone, and is no news of it
        log.error("status_read_broke", task_id=str(item.task.pk), error=str(defect)[:200])
        return ReadTrouble(reason="not_read")


async def read_status(request: HttpRequest, provider: Provider, client: ReadClient) -> StatusReading:
    try:
        return provider.read_status(await client.get(request))
    except ReadFailed as failure:
        return ReadTrouble(reason=failure.reason)


async def _ask_to_stop(item: RunningTask, provider: Provider, client: ReadClient) -> None:
    """Send the cancellation; whether it was obeyed is told by the status. Unclear answers are asked again."""
    try:
        answer = provider.read_cancel(await client.get(provider.cancel(item.job)))
    except ReadFailed as failure:
        log.info("cancel_not_answered", task_id=str(item.task.pk), reason=failure.reason)
        return
    if isinstance(answer, CancelRequested | AlreadyCompleted | CancelNotFound):
        await sync_to_async(note_cancel_sent)(item.task)


@db.transaction
def note_cancel_sent(task: VideoTask) -> None:
    VideoTask.objects.filter(pk=task.pk, cancel_sent_at__isnull=True).update(cancel_sent_at=db.now())


def record_readings(
    *, work: Sequence[RunningTask], readings: Sequence[StatusReading], provider: Provider
) -> None:
    """Write what the reads brought: one statement for all that only goes on, one transaction per ending.

    The first failure is raised at the end, since it concerns one task alone.
    """
    now = db.now()
    going_on: list[RunningTask] = []
    first: Exception | None = None
    for item, reading in zip(work, readings, strict=True):
        try:
            if _goes_on(item, reading, provider, now):
                going_on.append(item)
        except (StaleLease, Overtaken):
            log.info("reading_came_too_late", task_id=str(item.task.pk))
        except Exception as failure:
            log.error("reading_not_recorded", task_id=str(item.task.pk), error=str(failure)[:200])
            first = first or failure
    if going_on:
        _write_going_on(going_on)
    trouble = [reading for reading in readings if isinstance(reading, AccountTrouble)]
    if trouble:
        alarms.raise_alarm(provider=provider.name, source="read", reason=trouble[0].reason, now=now)
    elif any(not isinstance(reading, ReadTrouble) for reading in readings) and alarms.has_alarm(
        provider=provider.name
    ):
        alarms.clear_alarm(provider=provider.name, source="read", now=now)
    if first is not None:
        raise first


def _goes_on(item: RunningTask, reading: StatusReading, provider: Provider, now: datetime) -> bool:
    """Act on a reading that ends something; True when the task only goes on, with its new values set."""
    match reading:
        case Succeeded():
            start_storing(item=item, now=now)
        case ProviderFailed():
            _fail(item, failure_of(item.task, reading, provider), now)
        case Cancelled():
            _fail(item, cancelled_failure(item.task), now)
        case NotFound() if item.task.cancel_sent_at is not None:
            # Taken out of the queue, as we asked. Should the job turn up all the same, its video is a gift.
            _fail(item, Failure(code="cancelled"), now, is_followed=True)
        case _:
            _set_going_on(item.task, reading, provider, now)
            return True
    return False


def _set_going_on(task: VideoTask, reading: StatusReading, provider: Provider, now: datetime) -> None:
    """Set what a reading says of a task that goes on. A failed read is counted, and nothing else follows."""
    task.next_check_at = next_read_at(task, now)
    match reading:
        case ReadTrouble(reason=reason, retry_after_seconds=told):
            _count_failed_read(task, now, reason=reason, told=told)
        case AccountTrouble(reason=reason):
            _count_failed_read(task, now, reason=reason, told=settings.PROVIDER_PROBE_SECONDS)
        case NotFound():
            pause = min(2.0 ** min(task.tries, 10), LONGEST_NOT_FOUND_SECONDS)
            _count_failed_read(task, now, reason="not_found", told=pause)
        case _:
            task.tries, task.first_try_at = 0, None
    match reading:
        case Waiting(queue_position=position):
            task.phase = Phase.QUEUED
            task.queue_position = (
                position if position is None or 0 <= position <= MAX_UPSTREAM_QUEUE else None
            )
        case Running(progress=progress):
            task.phase, task.queue_position = Phase.RUNNING, None
            if progress is not None:  # clamped, never falling, and 100 only when completed
                task.progress = max(min(progress, 99), 0, task.progress or 0)
        case UnseenWord(word=word):
            log.warning("unseen_status_word", provider=provider.name, word=word[:64])


def _count_failed_read(task: VideoTask, now: datetime, *, reason: str, told: float | None) -> None:
    if told is not None:
        # Not longer, whatever was told: the result does not wait for us for ever.
        pause = timedelta(seconds=min(told, LONGEST_TOLD_SECONDS))
        task.next_check_at = max(task.next_check_at or now, now + pause)
    task.tries, task.first_try_at = task.tries + 1, task.first_try_at or now
    log.info("status_not_read", task_id=str(task.pk), reason=reason)


_OF_A_READING = ("next_check_at", "tries", "first_try_at", "phase", "queue_position", "progress")
_GO_ON = CompiledUpdate(
    lambda: VideoTask.objects.filter(
        pk=Parameter("id", UUIDField()), lease_token=Parameter("lease_token", UUIDField())
    ),
    lease_token=None,
    lease_until=None,
    **{name: Parameter(name, cast(Any, VideoTask._meta.get_field(name))) for name in _OF_A_READING},
)


@db.transaction
def _write_going_on(items: Sequence[RunningTask]) -> None:
    """Write many tasks that go on at once, and let go of their leases. Stale ones change nothing."""
    _GO_ON.run_many(
        [
            {
                "id": item.task.pk,
                "lease_token": item.lease.token,
                **{name: getattr(item.task, name) for name in _OF_A_READING},
            }
            for item in sorted(items, key=lambda item: item.task.pk)
        ]
    )


def cancelled_failure(task: VideoTask) -> Failure:
    """Cancelled by us, or by the provider of its own accord, which is its failure."""
    is_asked = task.cancel_requested_at is not None
    return Failure(code="cancelled" if is_asked else "provider_failed", reason="cancelled")


def failure_of(task: VideoTask, reading: ProviderFailed, provider: Provider) -> Failure:
    """A provider's failure in our words. A task we asked to cancel is called cancelled."""
    if task.cancel_sent_at is not None and reading.code == "provider_failed":
        return Failure(code="cancelled", detail=provider.scrub(reading.detail), reason=reading.reason)
    params = {"field": reading.field or "request"} if reading.code == "input_invalid" else {}
    return Failure(
        code=reading.code,
        params=params,
        detail=provider.scrub(reading.detail),
        reason=reading.reason,
        keeps_charge=(
            reading.code == "output_withheld"
            and reading.charged is not None
            and reading.charged.is_above_zero
        ),
    )


def next_read_at(task: VideoTask, now: datetime) -> datetime:
    age = (now - (task.accepted_at or task.created_at)).total_seconds()
    return now + timedelta(
        seconds=next_read_in(
            age_seconds=age,
            first=settings.FIRST_POLL_SECONDS,
            slowest=settings.SLOWEST_POLL_SECONDS,
            chance=random.random,
        )
    )


@db.transaction
def start_storing(*, item: RunningTask, now: datetime) -> None:
    """The provider is done: the result is fetched next. Raises: StaleLease."""
    task = lock_leased(item.lease)
    VideoTask.objects.filter(pk=task.pk).update(
        phase=Phase.STORING,
        queue_position=None,
        next_check_at=now,
        lease_token=None,
        lease_until=None,
        tries=0,
        first_try_at=None,
    )
    nudge("videos.tasks.store_due")


@db.transaction
def _fail(item: RunningTask, failure: Failure, now: datetime, *, is_followed: bool = False) -> None:
    task = lock_leased(item.lease)
    fail(task=task, failure=failure, cause=failure.cause, actor=PROVIDER, now=now)
    if is_followed:
        Attempt.objects.filter(pk=item.attempt.pk).update(late_check_at=now)
