"""Call-backs of providers. They only wake an authenticated read; the body is never believed by itself."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import structlog
from django.db import IntegrityError
from django.db.models import F

from core import db
from core.ids import task_of_webhook_key
from core.nudge import nudge
from videos.locks import lock_task
from videos.models import Attempt, VideoTask, WebhookCall
from videos.providers.base import Provider, WebhookNotice
from videos.states import Outcome, State

log = structlog.get_logger(__name__)

MAX_CALL_BYTES = 1024 * 1024  # a call-back carries a result's address, not the result


class UnknownKey(Exception):
    """No task of ours has this call-back address, or the call is about the job of another."""


@db.durable
def receive_call(
    *, provider: Provider, key: str, headers: Mapping[str, str], raw_body: bytes, now: datetime
) -> None:
    """Take a call-back in; repeats, and calls about what is known already, are fine.

    Raises: UnknownKey; WebhookRefused (signature, age, form); any database error, so that the provider asks
    again because it was not stored.
    """
    task_id = task_of_webhook_key(key)
    if task_id is None:
        raise UnknownKey
    if not Attempt.objects.filter(task_id=task_id, provider=provider.name).exists():
        raise UnknownKey
    provider.verify_webhook(headers, raw_body, now)
    notice = provider.read_webhook(raw_body)
    holder = Attempt.objects.filter(provider=provider.name, upstream_id=notice.upstream_id).first()
    if holder is not None and holder.task_id != task_id:  # a true call, sent to another task's address
        raise UnknownKey
    try:
        _store(task_id=task_id, notice=notice, now=now)
    except IntegrityError:  # the same call at the same moment stored its row first; this one only counts
        _store(task_id=task_id, notice=notice, now=now)


@db.transaction
def _store(*, task_id: UUID, notice: WebhookNotice, now: datetime) -> None:
    task = lock_task(task_id)
    known = Attempt.objects.filter(
        task_id=task_id, outcome=Outcome.ACCEPTED, upstream_id=notice.upstream_id
    ).exists()
    repeated = WebhookCall.objects.filter(task_id=task_id, upstream_id=notice.upstream_id).update(
        calls=F("calls") + 1, word=notice.word[:64]
    )
    if not repeated:
        WebhookCall.objects.create(
            task_id=task_id,
            upstream_id=notice.upstream_id[:128],
            word=notice.word[:64],
            received_at=now,
            check_at=None if known else now,
        )
    if known and task is not None:
        _wake(task, now)
    elif not known:
        nudge("videos.tasks.check_unknown_due")


def _wake(task: VideoTask, now: datetime) -> None:
    """Read the job at once. A read under way may be older than the call, so its lease is taken over."""
    woken = VideoTask.objects.filter(pk=task.pk, state=State.PROCESSING, phase__isnull=True) | (
        VideoTask.objects.filter(pk=task.pk, state=State.PROCESSING).exclude(phase="storing")
    )
    if woken.update(next_check_at=now, lease_token=None, lease_until=None):
        nudge("videos.tasks.poll_due")
