"""Locks, by name. They are taken in one order: task, claim, account; ascending ids within each."""

from datetime import datetime
from uuid import UUID

from core import db
from videos.models import VideoTask


@db.transaction_required
def lock_task(task_id: UUID) -> VideoTask | None:
    """Lock one task's row. What a decision reads besides is read in a later statement, and so is current."""
    return VideoTask.objects.select_for_update().filter(pk=task_id).first()


def not_before(task: VideoTask | None, now: datetime) -> datetime:
    """`now`, or the time of the task's last change if that is later: it changed while we waited for its lock.

    What follows a change must not carry an earlier time than the change.
    """
    return now if task is None else max(now, task.entered_state_at)
