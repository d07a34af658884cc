"""Sending tasks to their provider: one committed attempt per POST, one POST per attempt.

Note [Sending]
1. The attempt is committed before any byte goes out, so that a crash leaves a trace.
2. Directly before the first byte the sender checks its deadline on a clock that runs while suspended.
3. The answer is recorded on the attempt whatever the lease says; only then is the task's fate decided.
No transaction is open while we talk to the network.
"""

import asyncio
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import structlog
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings

from core import db
from core.http import AnswerLost, Deadline, HttpResponse, NotSent, send_once
from core.ids import idempotency_key, webhook_key
from videos.catalogue import ModelSpec, get_model
from videos.endings import POLICY, Failure, change_state, fail, note_evidence
from videos.engine import alarms
from videos.engine.binding import Bound, UpstreamJob, bind
from videos.engine.leases import Lease, StaleLease, due, lock_leased, take_due
from videos.engine.pauses import pause_after
from videos.engine.verdicts import (
    DEADLINE,
    THROTTLED,
    Answer,
    Fate,
    Tried,
    Verdict,
    fate_of,
    judge_answer,
    refusal_code,
    refusal_params,
)
from videos.locks import lock_task, not_before
from videos.models import Attempt, AttemptPayload, Payload, VideoTask
from videos.providers.base import Accepted, Order, Provider, Rejected, Submission, Unclear, WebhookSupport
from videos.providers.registry import get_provider, provider_names
from videos.queries import attempts_of, paused_seconds
from videos.states import EvidenceKind, Outcome, State

log = structlog.get_logger(__name__)

SENT_AT_ONCE = 16  # POSTs in flight of one run; each starts at once, so none waits for its lease to run out
PROVIDER = "provider"  # the actor of what a provider's answer decides


@dataclass(frozen=True, kw_only=True)
class Sending:
    """An attempt ready to be sent."""

    attempt: Attempt
    lease: Lease
    submission: Submission
    provider: Provider
    deadline: Deadline


@db.durable
def dispatch_due(*, rounds: int | None = None) -> int:
    """Send what is due, of every provider; how many tasks were taken on."""
    return sum(dispatch_provider(name, rounds=rounds) for name in provider_names())


@db.durable
def dispatch_provider(name: str, *, rounds: int | None = None) -> int:
    """Send a provider's due tasks until none is due, or for a number of rounds of SENT_AT_ONCE.

    In quarantine nothing is sent: what waits in a restored database may have been sent after the backup.
    """
    if settings.QUARANTINE:
        return 0
    taken, done = 0, 0
    while True:
        if done == rounds:
            return taken
        done += 1
        # On the sender's own clock, from before the lease was taken: always over before the lease is.
        deadline = Deadline(
            settings.LEASE_SECONDS - settings.SUBMIT_READ_SECONDS - settings.SUBMIT_CONNECT_SECONDS
        )
        now = db.now()
        any_due = due(work="dispatch", provider=name, now=now).exists()
        room = alarms.sendable(provider=name, limit=SENT_AT_ONCE, now=now) if any_due else 0
        work = take_due(work="dispatch", provider=name, limit=room) if room else []
        if not work:
            return taken
        taken += len(work)
        provider = get_provider(name)
        ready, failure = _begin_all(work=work, provider=provider, deadline=deadline)
        async_to_sync(_send_all)(ready)
        if failure is not None:
            raise failure


async def _send_all(ready: list[Sending]) -> None:
    # All are waited for, also when one fails: the others' POSTs would be cut, and their answers lost.
    ended = await asyncio.gather(*(_send(sending) for sending in ready), return_exceptions=True)
    for failure in ended:
        if failure is not None:
            raise failure


async def _send(sending: Sending) -> None:
    """One POST, and its answer on record as soon as it is there."""
    response: HttpResponse | None = None
    answer: Answer
    try:
        response = await send_once(
            sending.submission.request,
            deadline=sending.deadline,
            connect_seconds=settings.SUBMIT_CONNECT_SECONDS,
            read_seconds=settings.SUBMIT_READ_SECONDS,
        )
        answer = _read(sending.provider, response)
    except (NotSent, AnswerLost) as failure:
        answer = failure
    await sync_to_async(record_answer)(sending=sending, answer=answer, response=response)


def _read(provider: Provider, response: HttpResponse) -> Answer:
    """What a provider's answer says. An adapter that cannot read one makes it unclear, and it is kept."""
    try:
        return provider.read_submit(response)
    except Exception as defect:  # whatever it is, the answer was received and must not be lost
        log.error("submit_answer_not_read", provider=provider.name, error=str(defect)[:200])
        return Unclear(reason="not_read")


def _begin_all(
    *, work: Sequence[tuple[VideoTask, Lease]], provider: Provider, deadline: Deadline
) -> tuple[list[Sending], Exception | None]:
    """Begin each task. The first failure is handed back: what was begun has to be sent before it is raised,
    since an attempt that was begun and not sent leaves its task unknown.
    """
    ready: list[Sending] = []
    first: Exception | None = None
    for task, lease in work:
        try:
            sending = begin_attempt(lease=lease, provider=provider, deadline=deadline, now=db.now())
        except StaleLease:
            log.info("lease_lost_before_sending", task_id=str(task.pk))
        except Exception as failure:  # whatever it is, it concerns this task alone
            log.error("task_not_begun", task_id=str(task.pk), error=str(failure)[:200])
            first = first or failure
        else:
            ready += [sending] if sending is not None else []
    return ready, first


@db.transaction
def begin_attempt(*, lease: Lease, provider: Provider, deadline: Deadline, now: datetime) -> Sending | None:
    """Commit the next attempt of a leased task, or decide that nothing may be sent.

    None when nothing is sent: an earlier sender died with its answer (the task becomes `unknown`), or it
    could not be sent in time (`failed`, refunded). Raises: StaleLease.
    """
    task = lock_leased(lease)
    if task.state != State.SUBMITTING:
        raise StaleLease(str(task.pk))
    attempts = attempts_of(task.pk)  # after the lock, in a statement of its own
    died = Attempt.objects.filter(task_id=task.pk, outcome=Outcome.INFLIGHT).update(
        outcome=Outcome.UNCLEAR, reason="lease_ran_out", finished_at=now
    )
    if died or any(attempt.outcome == Outcome.UNCLEAR for attempt in attempts):
        become_unknown(task=task, cause="lease_ran_out" if died else "unclear", now=now)
        return None
    # An answer recorded after its lease was decided by nobody yet.
    if attempts and _ended_unsent(task=task, last=attempts[-1].reason, now=now):
        return None
    if _waited(task, now) >= settings.SUBMIT_GIVE_UP_AFTER:
        figures = {"seconds": int(settings.SUBMIT_GIVE_UP_AFTER)}
        fail(
            task=task,
            failure=Failure(code="not_sent_in_time", params=figures),
            cause="not_sent_in_time",
            actor=POLICY,
            now=now,
        )
        return None
    spec = get_model(task.model)
    if spec is None:  # withdrawn from the catalogue with tasks waiting: a person decides
        log.error("model_of_waiting_task_is_gone", task_id=str(task.pk), model=task.model)
        return None
    submission = provider.submit(_order(task, spec, provider, number=len(attempts) + 1))
    attempt = _insert_attempt(task, provider, submission, number=len(attempts) + 1, now=now)
    return Sending(attempt=attempt, lease=lease, submission=submission, provider=provider, deadline=deadline)


def _waited(task: VideoTask, now: datetime) -> float:
    """Seconds since the task entered `submitting`, without those in which we could not send at all."""
    paused = paused_seconds(provider=task.provider, now=now) - task.paused_seconds_before
    return (now - task.entered_state_at).total_seconds() - max(0.0, paused)


def order_of(*, task: VideoTask, attempt: Attempt, spec: ModelSpec, provider: Provider) -> Order:
    """The order that an attempt sent, word for word; for matching a provider's list."""
    return _order(task, spec, provider, number=attempt.number, marker=attempt.marker)


def _order(
    task: VideoTask, spec: ModelSpec, provider: Provider, *, number: int, marker: str | None = None
) -> Order:
    webhook_url = None
    if provider.capabilities.webhook == WebhookSupport.PER_REQUEST_URL:
        webhook_url = f"{settings.PUBLIC_BASE_URL}/hooks/{provider.name}/{webhook_key(task.pk)}"
    return Order(
        task_id=task.pk,
        attempt_number=number,
        key=idempotency_key(task.pk),
        model=spec,
        prompt=Payload.objects.get(task=task).prompt,
        seconds=task.seconds,
        resolution=task.resolution,
        aspect_ratio=task.aspect_ratio,
        audio=task.audio,
        seed=task.seed,
        webhook_url=webhook_url,
        marker=marker,
    )


def _insert_attempt(
    task: VideoTask, provider: Provider, submission: Submission, *, number: int, now: datetime
) -> Attempt:
    body = submission.request.body or b""
    attempt = Attempt.objects.create(
        task_id=task.pk,
        owner_id=task.owner_id,
        number=number,
        key=idempotency_key(task.pk),
        marker=submission.marker,
        request_sha256=hashlib.sha256(body).hexdigest(),
        provider=provider.name,
        provider_account=provider.account,
        model=task.model,
        started_at=now,
    )
    AttemptPayload.objects.create(attempt=attempt, request_body=body.decode("utf-8", "replace"))
    return attempt


def record_answer(*, sending: Sending, answer: Answer, response: HttpResponse | None) -> None:
    """Record an attempt's answer, decide what the lease still allows, and sound or end the provider's
    alarm.
    """
    now = db.run_until_saved(db.now)
    verdict = judge_answer(answer)
    # Recording is safe to repeat: every step of it is a compare-and-swap. The answer comes only once.
    db.run_until_saved(
        partial(_record, sending=sending, answer=answer, verdict=verdict, response=response, now=now)
    )
    if verdict.is_alarm:
        alarms.raise_alarm(provider=sending.provider.name, source="submit", reason=verdict.reason, now=now)
    elif response is not None and verdict.outcome != Outcome.UNCLEAR:
        alarms.clear_alarm(provider=sending.provider.name, source="submit", now=now)


@db.transaction
def _record(
    *, sending: Sending, answer: Answer, verdict: Verdict, response: HttpResponse | None, now: datetime
) -> None:
    task = lock_task(sending.lease.task_id)
    now = not_before(task, now)
    columns = _answer_columns(sending.provider, response, keep_body=task is not None, attempt=sending.attempt)
    if isinstance(answer, Accepted):
        job = UpstreamJob(
            upstream_id=answer.upstream_id,
            source=sending.provider.name,
            actor=PROVIDER,
            handles=answer.handles,
            queue_position=answer.queue_position,
            answer=columns,
        )
        if bind(task=task, attempt=sending.attempt, job=job, now=now) != Bound.BOUND:
            log.info("answer_after_the_fact", task_id=str(sending.lease.task_id))
        return
    Attempt.objects.filter(pk=sending.attempt.pk, outcome__in=_may_become(verdict.outcome)).update(
        outcome=verdict.outcome, reason=verdict.reason, finished_at=now, **columns
    )
    if task is None:
        return
    if task.lease_token != sending.lease.token:
        # The evidence is recorded; what it means is decided by whoever holds the task now.
        VideoTask.objects.filter(pk=task.pk, state=State.UNKNOWN).update(next_check_at=now)
        return
    detail = sending.provider.scrub(answer.detail) if isinstance(answer, Rejected) else ""
    _decide(task=task, verdict=verdict, detail=detail, now=now)


def _may_become(outcome: Outcome) -> list[Outcome]:
    return [Outcome.INFLIGHT] if outcome == Outcome.UNCLEAR else [Outcome.INFLIGHT, Outcome.UNCLEAR]


def _answer_columns(
    provider: Provider, response: HttpResponse | None, *, keep_body: bool, attempt: Attempt
) -> dict[str, object]:
    if response is None:
        return {}
    if keep_body:
        text = provider.scrub(response.body.decode("utf-8", "replace"), limit=16_384)
        AttemptPayload.objects.filter(attempt=attempt).update(response_body=text)
    return {"http_status": response.status, "response_sha256": hashlib.sha256(response.body).hexdigest()}


@db.transaction_required
def _decide(*, task: VideoTask, verdict: Verdict, detail: str, now: datetime) -> None:
    """What an attempt that was not accepted means for its task, in the light of all attempts."""
    match fate_of(tried(task.pk)):
        case Fate.OPEN:
            become_unknown(task=task, cause=verdict.reason, now=now)
        case Fate.REFUSED:
            fail_refused(task=task, reason=verdict.reason, detail=detail, actor=PROVIDER, now=now)
        case Fate.UNSENT if task.cancel_requested_at is not None:
            fail_cancelled_unsent(task=task, now=now)
        case Fate.UNSENT:
            wait_to_send(task=task, verdict=verdict, now=now)
        case Fate.RUNNING:
            log.error("answer_of_a_running_task", task_id=str(task.pk))


@db.transaction_required
def _ended_unsent(*, task: VideoTask, last: str, now: datetime) -> bool:
    """End a task, none of whose attempts is open, that is not to be sent again: refused for good, or the
    owner wished to cancel it while an attempt was on its way. True when it ended.
    """
    if fate_of(tried(task.pk)) == Fate.REFUSED:
        fail_refused(task=task, reason=last, detail="", actor=PROVIDER, now=now)
        return True
    if task.cancel_requested_at is not None:
        fail_cancelled_unsent(task=task, now=now)
        return True
    return False


@db.transaction_required
def fail_refused(*, task: VideoTask, reason: str, detail: str, actor: str, now: datetime) -> None:
    """End a task whose last attempt was refused for good; `reason` is what that attempt keeps."""
    code = refusal_code(reason) or "provider_failed"
    failure = Failure(code=code, params=refusal_params(reason), detail=detail)
    fail(task=task, failure=failure, cause="refused", actor=actor, now=now)


@db.transaction_required
def fail_cancelled_unsent(*, task: VideoTask, now: datetime) -> None:
    """End a task that its owner wished to cancel, now that no attempt of it can have been executed."""
    fail(task=task, failure=Failure(code="cancelled"), cause="cancelled", actor=POLICY, now=now)


def tried(task_id: UUID) -> list[Tried]:
    return [Tried(outcome=Outcome(item.outcome), reason=item.reason) for item in attempts_of(task_id)]


@db.transaction_required
def wait_to_send(*, task: VideoTask, verdict: Verdict, now: datetime) -> None:
    """Let a task that was certainly not executed wait for its next try."""
    slept = verdict.reason == DEADLINE  # nobody refused anything: the pause does not grow
    tries = 0 if slept else task.tries
    pause = pause_after(tries=tries, told_seconds=verdict.pause_seconds, chance=random.random)
    VideoTask.objects.filter(pk=task.pk, state=State.SUBMITTING).update(
        next_check_at=now + timedelta(seconds=pause),
        lease_token=None,
        lease_until=None,
        tries=task.tries + 1,
        wait_reason="provider_busy" if verdict.reason == THROTTLED else task.wait_reason,
    )


@db.transaction_required
def become_unknown(*, task: VideoTask, cause: str, now: datetime) -> None:
    """Say honestly that nobody knows yet; the time counts from the first unclear answer."""
    change_state(
        task=task,
        to=State.UNKNOWN,
        cause=cause,
        actor=POLICY,
        now=now,
        next_check_at=now,
        first_unclear_at=task.first_unclear_at or now,
        wait_reason=None,
        tries=0,
    )


@db.transaction_required
def send_again(
    *, task: VideoTask, kind: EvidenceKind, source: str, actor: str, reason: str, now: datetime
) -> None:
    """Put a task whose every attempt is proven not executed back to be sent, with the evidence.

    One that its owner wished to cancel meanwhile is cancelled instead.
    """
    note_evidence(task_id=task.pk, kind=kind, source=source, reason=reason, now=now)
    if task.cancel_requested_at is not None:
        fail_cancelled_unsent(task=task, now=now)
        return
    change_state(
        task=task,
        to=State.SUBMITTING,
        cause="proven_not_executed",
        actor=actor,
        now=now,
        next_check_at=now,
        wait_reason="sending_again",
        tries=0,
        paused_seconds_before=paused_seconds(provider=task.provider, now=now),
    )
