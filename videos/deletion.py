"""Deleting a task, from either side: its record or its result file. The claim stays, as the tombstone."""

from datetime import datetime
from uuid import UUID

from core import db
from files import operations as files
from files.models import StoredFile
from tombstones import operations as tombstones
from tombstones.models import BurialReason
from videos.errors import Gone, NotDeletable, NotReceived
from videos.locks import lock_task
from videos.models import Attempt, AttemptPayload, Payload, VideoTask
from videos.queries import view_of
from videos.states import FINAL


@db.transaction
def delete_task(*, owner_id: UUID, client_id: str, now: datetime) -> None:
    """Delete a final task with its result. Deleting it again is the same as before.

    Raises: NotReceived for an unseen id; Gone when it was abandoned; NotDeletable while its outcome is open.
    """
    view = view_of(owner_id=owner_id, client_id=client_id)
    if view is None:
        raise NotReceived
    if view.is_buried:
        if view.claim.reason == BurialReason.ABANDONED:
            raise Gone
        return
    task = lock_task(view.claim.pk)
    if task is None:
        return  # deleted by another request while this one waited for the lock
    _bury(task=task, reason=BurialReason.TASK_DELETED, now=now)


@db.transaction
def delete_result(*, owner_id: UUID, file_id: UUID, now: datetime) -> bool:
    """Delete a result file and with it its task, in one transaction. False when there is no such file.

    Raises: NotDeletable while the task's outcome is open.
    """
    file = StoredFile.objects.filter(
        owner_id=owner_id, pk=file_id, kind=StoredFile.Kind.RESULT, task_id__isnull=False
    ).first()
    if file is None or file.task_id is None:
        return False
    task = lock_task(file.task_id)
    if task is None:
        return False
    _bury(task=task, reason=BurialReason.FILE_DELETED, now=now)
    return True


@db.transaction_required
def bury_if_requested(*, task: VideoTask, now: datetime) -> None:
    """Bury a task that just became final and whose canvas is gone; part of the transaction that ended it."""
    if task.delete_requested_at is not None:
        _bury(task=task, reason=BurialReason.CANVAS_DELETED, now=now)


@db.transaction
def bury_one_left_over(*, task_id: UUID, now: datetime) -> bool:
    """The sweeper's side of `delete_requested`: bury a final task that was marked after it ended."""
    task = lock_task(task_id)
    if task is None or task.delete_requested_at is None or task.state not in FINAL:
        return False
    _bury(task=task, reason=BurialReason.CANVAS_DELETED, now=now)
    return True


def _bury(*, task: VideoTask, reason: BurialReason, now: datetime) -> None:
    """Bury the claim of a locked task and delete task, payloads and result. Raises: NotDeletable."""
    if task.state not in FINAL:
        raise NotDeletable
    tombstones.bury(claim_id=task.pk, reason=reason, now=now)
    attempts = Attempt.objects.filter(task_id=task.pk)
    AttemptPayload.objects.filter(attempt__in=attempts).delete()
    attempts.filter(late_check_at__isnull=False).update(late_check_at=None)
    Payload.objects.filter(task=task).delete()
    result = StoredFile.objects.filter(task_id=task.pk).first()
    VideoTask.objects.filter(pk=task.pk).delete()
    if result is not None:
        files.delete_file(file=result, now=now)
