"""Housekeeping of tasks: what no single wake-up may be relied on for."""

from datetime import datetime, timedelta

import structlog

from core import db
from videos import deletion
from videos.engine import results
from videos.models import Sweep, VideoTask
from videos.states import FINAL, State
from videos.time_limits import max_age_seconds

log = structlog.get_logger(__name__)

SWEPT_AT_ONCE = 200
SWEEP = "sweep"  # the one row of `Sweep`


@db.durable
def sweep(*, now: datetime) -> None:
    """Alert about stuck tasks, once each, bury what was marked for deletion and has ended, and tidy up."""
    alert_stuck(now=now)
    results.remove_old_drafts(now=now)
    left_over = VideoTask.objects.filter(delete_requested_at__isnull=False, state__in=FINAL)
    for task_id in left_over.values_list("pk", flat=True)[:SWEPT_AT_ONCE]:
        deletion.bury_one_left_over(task_id=task_id, now=now)


@db.durable
def note_sweep(*, now: datetime) -> None:
    """Remember that a whole run of housekeeping has ended; `/metrics` tells how long ago."""
    Sweep.objects.update_or_create(name=SWEEP, defaults={"ended_at": now})


@db.durable
def alert_stuck(*, now: datetime) -> int:
    """Log each running task that is older than its model's maximum, once. A local limit is not a verdict.

    Each in a transaction of its own: no order of locks, so no deadlock with the bulk write of polling.
    """
    running = VideoTask.objects.filter(
        state=State.PROCESSING, next_check_at__isnull=False, stuck_alerted_at__isnull=True
    )
    alerted = 0
    for model in running.order_by().values_list("model", flat=True).distinct():
        oldest = now - timedelta(seconds=max_age_seconds(model))
        for task in running.filter(model=model, accepted_at__lt=oldest)[:SWEPT_AT_ONCE]:
            VideoTask.objects.filter(pk=task.pk).update(stuck_alerted_at=now)
            log.error("task_stuck", task_id=str(task.pk), model=model, accepted_at=str(task.accepted_at))
            alerted += 1
    return alerted
