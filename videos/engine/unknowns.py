"""Tasks whose fate nobody knows yet: look them up, listen for call-backs, and after a day give the money
back.
"""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db.models import Min

from core import db
from core.http import ReadClient, ReadFailed
from videos.catalogue import get_model
from videos.endings import POLICY, Failure, Overtaken, fail, note_evidence
from videos.engine.binding import UpstreamJob, bind
from videos.engine.dispatch import fail_refused, order_of, send_again, tried
from videos.engine.leases import Lease, StaleLease, lock_leased, take_due
from videos.engine.pauses import next_unknown_check_in
from videos.engine.polling import read_status
from videos.engine.verdicts import Fate, fate_of
from videos.locks import lock_task, not_before
from videos.models import Attempt, VideoTask, WebhookCall
from videos.providers.base import (
    AccountTrouble,
    Job,
    Lookup,
    LookupHit,
    NotFound,
    Provider,
    ReadTrouble,
)
from videos.providers.registry import get_provider, provider_names
from videos.queries import attempts_of
from videos.states import EvidenceKind, Outcome, State
from videos.time_limits import give_up_seconds

log = structlog.get_logger(__name__)

CHECKED_AT_ONCE = 50
LIST_PAGES = 20  # of 100 jobs each; a longer list is asked again later, from the same time on
LIST_MARGIN = timedelta(minutes=2)  # the provider's clock and ours
CALL_TRIES = 8  # "no such job" that is believed of a job that a call-back named
CALL_FOR = timedelta(days=2)  # how long the provider is asked when it cannot answer: longer than any job
LONGEST_CALL_PAUSE_SECONDS = 300.0
OPEN_OUTCOMES = (Outcome.INFLIGHT, Outcome.UNCLEAR)


@dataclass(frozen=True, kw_only=True)
class Match:
    """A job that a look-up found for an attempt, unique both ways."""

    attempt: Attempt
    upstream_id: str


@db.durable
def check_unknown_due() -> int:
    """Look into what is due, of every provider; how many tasks were looked into."""
    try:
        confirm_calls_due()
    finally:  # trouble with a call-back must not keep other tasks waiting
        checked = _check_tasks_due()
    return checked


def _check_tasks_due() -> int:
    checked = 0
    for name in provider_names():
        work = take_due(work="unknown", provider=name, limit=CHECKED_AT_ONCE)
        checked += len(work)
        if work:
            _check(work, get_provider(name))
    return checked


def _check(work: list[tuple[VideoTask, Lease]], provider: Provider) -> None:
    matches = (
        async_to_sync(_look_up)(work, provider) if provider.capabilities.lookup == Lookup.LIST_ECHO else {}
    )
    first: Exception | None = None
    for task, lease in work:
        try:
            conclude(lease=lease, provider=provider, match=matches.get(task.pk), now=db.now())
        except (StaleLease, Overtaken):
            log.info("unknown_was_decided_meanwhile", task_id=str(task.pk))
        except Exception as failure:  # whatever it is, it concerns this task alone
            log.error("unknown_not_concluded", task_id=str(task.pk), error=str(failure)[:200])
            first = first or failure
    if first is not None:
        raise first


@db.transaction
def conclude(*, lease: Lease, provider: Provider, match: Match | None, now: datetime) -> None:
    """Decide about one unknown task by what is known now. Raises: StaleLease, Overtaken."""
    task = lock_leased(lease)
    if task.state != State.UNKNOWN:
        raise StaleLease(str(task.pk))
    if match is not None:
        job = UpstreamJob(
            upstream_id=match.upstream_id, source=provider.name, actor=POLICY, kind=EvidenceKind.LOOKUP
        )
        bind(task=task, attempt=match.attempt, job=job, now=now)
        return
    attempts = tried(task.pk)
    match fate_of(attempts):
        case Fate.UNSENT:
            send_again(
                task=task,
                kind=EvidenceKind.LATE_ANSWER,
                source=provider.name,
                actor=POLICY,
                reason=attempts[-1].reason if attempts else "",
                now=now,
            )
        case Fate.REFUSED:
            last = attempts[-1].reason
            kind = EvidenceKind.LATE_ANSWER
            note_evidence(task_id=task.pk, kind=kind, source=provider.name, reason=last, now=now)
            fail_refused(task=task, reason=last, detail="", actor=POLICY, now=now)
        case _:
            _wait_or_give_up(task, provider, now)


def _wait_or_give_up(task: VideoTask, provider: Provider, now: datetime) -> None:
    age = (now - (task.first_unclear_at or now)).total_seconds()
    limit = give_up_seconds(provider)
    if age < limit or settings.QUARANTINE:  # a restored database may have lost the answer: no verdict on it
        pause = min(next_unknown_check_in(age_seconds=age, chance=random.random), max(1.0, limit - age))
        VideoTask.objects.filter(pk=task.pk, state=State.UNKNOWN).update(
            next_check_at=now + timedelta(seconds=pause), lease_token=None, lease_until=None
        )
        return
    note_evidence(
        task_id=task.pk, kind=EvidenceKind.TIME_LIMIT, source=POLICY, reason=f"{int(age)} s", now=now
    )
    failure = Failure(code="time_limit", params={"seconds": int(limit)})
    fail(task=task, failure=failure, cause="time_limit", actor=POLICY, now=now)
    # If the provider did run it, that is our loss; the job is still looked for by bill and call-back.


# --- look-up in the provider's list ---------------------------------------------------------------


async def _look_up(work: list[tuple[VideoTask, Lease]], provider: Provider) -> dict[UUID, Match]:
    """Ask the provider's list for jobs of these tasks. Absence proves nothing here and decides nothing."""
    by_model: dict[str, list[VideoTask]] = {}
    for task, _ in work:
        by_model.setdefault(task.model, []).append(task)
    found: dict[UUID, Match] = {}
    async with ReadClient(total_seconds=20.0) as client:
        for model, tasks in by_model.items():
            spec = get_model(model)
            if spec is None:
                continue
            # From the sending on: it may have been found unclear long after, when all workers were down.
            since = await sync_to_async(_sent_since)(tasks) - LIST_MARGIN
            hits = await _list(provider, client, endpoint=spec.endpoint, since=since)
            found.update(await sync_to_async(match_hits)(tasks=tasks, hits=hits, provider=provider))
    return found


def _sent_since(tasks: list[VideoTask]) -> datetime:
    """When the first of these tasks' open attempts was sent."""
    open_attempts = Attempt.objects.filter(task_id__in=[task.pk for task in tasks], outcome__in=OPEN_OUTCOMES)
    first: datetime | None = open_attempts.aggregate(first=Min("started_at"))["first"]
    return first or min(task.created_at for task in tasks)


async def _list(provider: Provider, client: ReadClient, *, endpoint: str, since: datetime) -> list[LookupHit]:
    hits: list[LookupHit] = []
    cursor: str | None = None
    until = await sync_to_async(db.now)()
    for _ in range(LIST_PAGES):
        request = provider.lookup(endpoint=endpoint, since=since, until=until + LIST_MARGIN, cursor=cursor)
        try:
            page = provider.read_lookup(await client.get(request))
        except ReadFailed as failure:
            log.info("look_up_failed", provider=provider.name, reason=failure.reason)
            break
        if page.trouble is not None:
            log.info("look_up_failed", provider=provider.name, reason=page.trouble.reason)
            break
        hits += page.found
        cursor = page.next_cursor
        if cursor is None:
            break
    return hits


def match_hits(*, tasks: list[VideoTask], hits: list[LookupHit], provider: Provider) -> dict[UUID, Match]:
    """Jobs that fit exactly one attempt, of attempts that fit exactly one unbound job."""
    taken = set(
        Attempt.objects.filter(
            provider_account=provider.account, upstream_id__in=[hit.upstream_id for hit in hits]
        ).values_list("upstream_id", flat=True)
    )
    pairs: list[tuple[Attempt, str]] = []
    for task in tasks:
        spec = get_model(task.model)
        for attempt in attempts_of(task.pk):
            if spec is None or attempt.outcome not in OPEN_OUTCOMES or _has_rival(attempt):
                continue
            order = order_of(task=task, attempt=attempt, spec=spec, provider=provider)
            pairs += [
                (attempt, hit.upstream_id)
                for hit in hits
                if hit.upstream_id not in taken and provider.recognises(order, hit)
            ]
    per_attempt = Counter(attempt.pk for attempt, _ in pairs)
    per_job = Counter(upstream_id for _, upstream_id in pairs)
    return {
        attempt.task_id: Match(attempt=attempt, upstream_id=upstream_id)
        for attempt, upstream_id in pairs
        if per_attempt[attempt.pk] == 1 and per_job[upstream_id] == 1
    }


def _has_rival(attempt: Attempt) -> bool:
    """Whether an open attempt of another task sent the very same bytes: either may own a job that fits.

    A marker differs per attempt, so this is about orders whose seed the owner chose, or that have none.
    """
    waiting = VideoTask.objects.filter(
        provider=attempt.provider, state__in=[State.SUBMITTING, State.UNKNOWN]
    ).exclude(pk=attempt.task_id)
    return (
        attempt.marker is None
        and Attempt.objects.filter(
            task_id__in=waiting.values("pk"),
            outcome__in=OPEN_OUTCOMES,
            provider_account=attempt.provider_account,
            model=attempt.model,
            request_sha256=attempt.request_sha256,
        ).exists()
    )


# --- call-backs -----------------------------------------------------------------------------------


@db.durable
def confirm_calls_due() -> int:
    """Ask the provider about every job that a call-back named and we have not asked about yet."""
    now = db.now()
    calls = list(WebhookCall.objects.filter(check_at__lte=now).order_by("check_at")[:CHECKED_AT_ONCE])
    if calls:
        async_to_sync(_confirm_all)(calls)
    return len(calls)


async def _confirm_all(calls: list[WebhookCall]) -> None:
    async with ReadClient(total_seconds=20.0) as client:
        ended = await asyncio.gather(*(_confirm(call, client) for call in calls), return_exceptions=True)
    for failure in ended:
        if failure is not None:
            raise failure


async def _confirm(call: WebhookCall, client: ReadClient) -> None:
    attempt = await sync_to_async(_attempt_for)(call)
    if attempt is None:
        await sync_to_async(confirm)(call_id=call.pk, attempt=None, is_real=True, is_answered=True)
        return
    provider = get_provider(attempt.provider)
    spec = get_model(attempt.model)
    job = Job(upstream_id=call.upstream_id, endpoint=spec.endpoint if spec else attempt.model)
    reading = await read_status(provider.status(job), provider, client)
    trouble = isinstance(reading, ReadTrouble | AccountTrouble)
    is_real = not trouble and not isinstance(reading, NotFound)
    await sync_to_async(confirm)(call_id=call.pk, attempt=attempt, is_real=is_real, is_answered=not trouble)


def _attempt_for(call: WebhookCall) -> Attempt | None:
    """The newest attempt that is in flight or unclear: the key in the address belongs to the epoch.

    Where none is, the newest one: a job that none of them has is a second one, which must not go unseen.
    """
    attempts = Attempt.objects.filter(task_id=call.task_id).order_by("-number")
    if attempts.filter(upstream_id=call.upstream_id).exists():
        return None
    return attempts.filter(outcome__in=OPEN_OUTCOMES).first() or attempts.first()


@db.transaction
def confirm(*, call_id: UUID, attempt: Attempt | None, is_real: bool, is_answered: bool) -> None:
    """Bind the job of a call-back that the provider itself confirmed; come back when it could not be
    asked.
    """
    now = db.now()
    call = WebhookCall.objects.get(pk=call_id)
    task = lock_task(call.task_id)
    now = not_before(task, now)
    if attempt is not None and is_real:
        job = UpstreamJob(
            upstream_id=call.upstream_id,
            source=attempt.provider,
            actor=POLICY,
            kind=EvidenceKind.WEBHOOK,
        )
        bind(task=task, attempt=attempt, job=job, now=now)
    tries = call.tries + 1
    # A call-back comes once. "No such job" may only be too early; and nothing is concluded from no answer.
    over = tries >= CALL_TRIES if is_answered else now - call.received_at > CALL_FOR
    pause = min(2.0 ** min(tries, 16), LONGEST_CALL_PAUSE_SECONDS)
    WebhookCall.objects.filter(pk=call.pk).update(
        check_at=None if is_real or over else now + timedelta(seconds=pause), tries=tries
    )
