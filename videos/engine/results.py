"""Fetching a finished video into our own storage. Only then is the task completed, and only then settled.

Note [Results]
Each download goes under a fresh key with a row of its own; only the transaction that completes the task
publishes it. A crash in between leaves a pending key, which housekeeping removes, and a task that is due
again. Trouble of our own storage or network fails nothing. What the provider no longer serves ends as a
refund.
"""

import asyncio
import os
import random
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO

import structlog
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage

from billing.models import Charge
from core import db
from core.http import Downloaded, DownloadFailed, DownloadRefused, ReadClient, ReadFailed, download
from files import operations as files
from videos.catalogue import get_model
from videos.endings import Failure, Overtaken, complete, fail
from videos.engine import alarms
from videos.engine.dispatch import PROVIDER
from videos.engine.leases import Lease, StaleLease, lock_leased, renew, take_due
from videos.engine.pauses import jittered, pause_after
from videos.engine.polling import RunningTask, cancelled_failure, failure_of, with_jobs
from videos.models import Attempt, VideoTask
from videos.providers.base import (
    AccountTrouble,
    Cancelled,
    NotFound,
    NotReady,
    NoUrl,
    Provider,
    ProviderFailed,
    ReadTrouble,
    Ready,
    ResultReading,
    Usage,
)
from videos.providers.registry import get_provider, provider_names
from videos.states import Phase

log = structlog.get_logger(__name__)

STORED_AT_ONCE = 4  # downloads of one run; they share one worker's network and disk
MAX_RESULT_BYTES = 2 * 1024**3
READ_SECONDS = 20.0
DOWNLOAD_SECONDS = 600.0  # 2 GB at 3.5 MB/s; the lease is renewed meanwhile
RENEWALS_A_LEASE = 3
DRAFT_PREFIX = "result-"
OLD_DRAFT_SECONDS = 24 * 3600  # longer than any download: its writer is gone
RETRY_SECONDS = 20.0  # 8 tries fill the 150 s of the bounded retries
GONE = frozenset({401, 403, 404, 410})  # answers of a file host that mean: no longer served
SUFFIXES = {"video/mp4": ".mp4", "video/webm": ".webm", "video/quicktime": ".mov"}


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A video under its pending key."""

    key: str
    content: files.Content
    usage: Usage | None


@dataclass(frozen=True, kw_only=True)
class NotFetched:
    """Why there is no video yet. `code`: what it becomes if it stays so, or None where time heals it."""

    reason: str
    code: str | None


Outcome = Fetched | NotFetched | ProviderFailed | Cancelled | NotReady | AccountTrouble


@db.durable
def store_due() -> int:
    """Fetch the results that are due, of every provider; how many were tried."""
    tried = 0
    for name in provider_names():
        while work := with_jobs(take_due(work="store", provider=name, limit=STORED_AT_ONCE)):
            tried += len(work)
            async_to_sync(_store_all)(work, get_provider(name))
    return tried


async def _store_all(work: list[RunningTask], provider: Provider) -> None:
    # All are waited for, also when one fails: the others' downloads would be cut, again and again.
    async with ReadClient(total_seconds=READ_SECONDS) as client:
        ended = await asyncio.gather(
            *(_store_one(item, provider, client) for item in work), return_exceptions=True
        )
    for failure in ended:
        if failure is not None:
            raise failure


async def _store_one(item: RunningTask, provider: Provider, client: ReadClient) -> None:
    renewing = asyncio.create_task(_keep_lease(item.lease))
    try:
        outcome = await fetch(item=item, provider=provider, client=client)
    finally:
        renewing.cancel()
    await sync_to_async(record_outcome)(item=item, outcome=outcome, provider=provider)


async def _keep_lease(lease: Lease) -> None:
    """Renew a lease until cancelled. One that is lost stays lost: its holder then decides nothing."""
    while True:
        await asyncio.sleep(settings.LEASE_SECONDS / RENEWALS_A_LEASE)
        if not await sync_to_async(renew)(lease):
            return


async def fetch(*, item: RunningTask, provider: Provider, client: ReadClient) -> Outcome:
    """Ask for the result and bring it home under a fresh key."""
    reading = await _read_result(item, provider, client)
    match reading:
        case Ready(url=url, usage=usage):
            return await _bring_home(url, usage, provider)
        case NoUrl():
            return NotFetched(reason="no_url", code="no_result")
        case NotFound():
            return NotFetched(reason="result_not_found", code="result_lost")
        case ReadTrouble(reason=reason):
            return NotFetched(reason=reason, code=None)
        case _:
            return reading


async def _read_result(item: RunningTask, provider: Provider, client: ReadClient) -> ResultReading:
    try:
        return provider.read_result(await client.get(provider.result(item.job)))
    except ReadFailed as failure:
        return ReadTrouble(reason=failure.reason)


async def _bring_home(url: str, usage: Usage | None, provider: Provider) -> Fetched | NotFetched:
    with tempfile.NamedTemporaryFile(dir=_incoming(), prefix=DRAFT_PREFIX) as draft:
        try:
            got = await download(
                url,
                sink=draft,
                allowed_origins=provider.result_origins,
                max_bytes=MAX_RESULT_BYTES,
                read_seconds=READ_SECONDS,
                total_seconds=DOWNLOAD_SECONDS,
            )
        except DownloadRefused as refused:
            if refused.reason == "host_not_allowed":
                # A new file host of the provider, most likely: our settings, so nobody's video is given up.
                log.error("result_host_not_allowed", provider=provider.name)
                return NotFetched(reason=refused.reason, code=None)
            log.warning("result_refused", reason=refused.reason)
            return NotFetched(reason=refused.reason, code="no_result")
        except DownloadFailed as failed:
            code = (
                "result_lost" if failed.status in GONE else "no_result" if failed.reason == "empty" else None
            )
            return NotFetched(reason=f"{failed.reason}:{failed.status or ''}", code=code)
        if got.content_type is None:
            return NotFetched(reason="not_a_video", code="no_result")
        draft.flush()
        os.fsync(draft.fileno())
        return await _keep(draft, got, usage)


def _incoming() -> Path:
    folder = Path(settings.DATA_DIR) / "incoming"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_old_drafts(*, now: datetime) -> int:
    """Remove what killed downloads left behind; how many files."""
    old = [
        draft
        for draft in _incoming().glob(f"{DRAFT_PREFIX}*")
        if now.timestamp() - draft.stat().st_mtime > OLD_DRAFT_SECONDS
    ]
    for draft in old:
        draft.unlink(missing_ok=True)
    return len(old)


async def _keep(draft: IO[bytes], got: Downloaded, usage: Usage | None) -> Fetched | NotFetched:
    """Move a finished download into the storage under a fresh key. Trouble of our storage is only an
    alarm.
    """
    content_type = str(got.content_type)
    suffix = SUFFIXES.get(content_type, ".mp4")
    now = await sync_to_async(db.now)()
    key = await sync_to_async(files.reserve_key)(folder="results", suffix=suffix, now=now)
    draft.seek(0)
    try:
        # In a thread of its own: it asks no database, and the lease must be renewed while it writes.
        await sync_to_async(default_storage.save, thread_sensitive=False)(key, File(draft))
    except Exception as error:  # every storage has errors of its own, and none may cost anybody a video
        log.error("storage_trouble", error=str(error)[:200])
        return NotFetched(reason="storage", code=None)
    content = files.Content(content_type=content_type, size_bytes=got.size, sha256=got.sha256)
    return Fetched(key=key, content=content, usage=usage)


def record_outcome(*, item: RunningTask, outcome: Outcome, provider: Provider) -> None:
    """Complete, fail or try again, under the task's lease."""
    now = db.now()
    try:
        match outcome:
            case Fetched():
                publish(item=item, fetched=outcome, now=now)
            case NotFetched():
                _try_again(lease=item.lease, trouble=outcome, now=now)
            case ProviderFailed():
                _fail(item.lease, failure_of(item.task, outcome, provider), now)
            case Cancelled():
                _fail(item.lease, cancelled_failure(item.task), now)
            case NotReady():
                _go_back_to_polling(item.lease, now)
            case AccountTrouble(reason=reason):
                alarms.raise_alarm(provider=provider.name, source="read", reason=reason, now=now)
                _try_again(lease=item.lease, trouble=NotFetched(reason=reason, code=None), now=now)
    except (StaleLease, Overtaken):
        log.info("result_came_too_late", task_id=str(item.task.pk))
        if isinstance(outcome, Fetched):
            files.discard_key(key=outcome.key, now=now)


@db.transaction
def publish(*, item: RunningTask, fetched: Fetched, now: datetime) -> None:
    """Show the video and take the money, in one transaction. Raises: StaleLease, Overtaken."""
    task = lock_leased(item.lease)
    file_id = publish_file(task=task, fetched=fetched, now=now)
    used = _used(task, fetched.usage)
    if fetched.usage is not None:
        Attempt.objects.filter(pk=item.attempt.pk).update(
            usage_units=fetched.usage.units, usage_unit=fetched.usage.unit
        )
    cause = "completed_despite_cancel" if task.cancel_requested_at else "completed"
    complete(task=task, file_id=file_id, used=used, cause=cause, actor=PROVIDER, now=now)


@db.transaction_required
def publish_file(*, task: VideoTask, fetched: Fetched, now: datetime) -> object:
    """Show a fetched video as the result of a task. Raises: Overtaken when its key is dead already."""
    suffix = SUFFIXES.get(fetched.content.content_type, ".mp4")
    file_id = files.publish_result(
        key=fetched.key,
        owner_id=task.owner_id,
        task_id=task.pk,
        name=f"{task.model}-{task.client_id}{suffix}",
        content=fetched.content,
        now=now,
    )
    if file_id is None:
        raise Overtaken(f"{fetched.key} is not pending")
    return file_id


def _used(task: VideoTask, usage: Usage | None) -> Decimal | None:
    """What the provider states as used, where it counts in the units that the owner is charged in.

    Those are frozen in the charge; today's catalogue may count in others.
    """
    spec = get_model(task.model)
    if usage is None or spec is None:
        return None
    charged_unit = Charge.objects.values_list("price_version__unit", flat=True).get(pk=task.pk)
    return usage.units if (usage.unit or spec.usage_unit) == charged_unit else None


@db.transaction
def _try_again(*, lease: Lease, trouble: NotFetched, now: datetime) -> None:
    """Come back for the result; give up what the provider does not serve after bounded tries and time."""
    task = lock_leased(lease)
    begins = trouble.code is not None and task.first_try_at is None
    tries = 1 if begins else task.tries + 1
    lasted = (now - (task.first_try_at or now)).total_seconds()
    over = tries >= settings.RESULT_GIVE_UP_TRIES and lasted >= settings.RESULT_GIVE_UP_SECONDS
    if trouble.code is not None and over:
        failure = Failure(code=trouble.code, detail=trouble.reason)
        fail(task=task, failure=failure, cause=trouble.reason, actor=PROVIDER, now=now)
        return
    VideoTask.objects.filter(pk=task.pk).update(
        next_check_at=now + timedelta(seconds=_pause(tries, is_bounded=trouble.code is not None)),
        lease_token=None,
        lease_until=None,
        tries=tries,
        # Trouble that time heals starts the bounded tries anew: the provider has not said anything yet.
        first_try_at=(task.first_try_at or now) if trouble.code else None,
    )
    log.info("result_not_fetched", task_id=str(task.pk), reason=trouble.reason, tries=tries)


def _pause(tries: int, *, is_bounded: bool) -> float:
    """Seconds until the next try: the bounded ones fit into their time, the others grow further apart."""
    if not is_bounded:
        return max(1.0, pause_after(tries=tries, told_seconds=None, chance=random.random))
    share = settings.RESULT_GIVE_UP_SECONDS / settings.RESULT_GIVE_UP_TRIES
    # With no pause at all one run would never end.
    return jittered(max(1.0, min(RETRY_SECONDS, share, 2.0 ** min(tries, 10))), random.random)


@db.transaction
def _fail(lease: Lease, failure: Failure, now: datetime) -> None:
    fail(task=lock_leased(lease), failure=failure, cause=failure.cause, actor=PROVIDER, now=now)


@db.transaction
def _go_back_to_polling(lease: Lease, now: datetime) -> None:
    task = lock_leased(lease)
    VideoTask.objects.filter(pk=task.pk).update(
        phase=Phase.RUNNING,
        next_check_at=now + timedelta(seconds=settings.FIRST_POLL_SECONDS),
        lease_token=None,
        lease_until=None,
    )
