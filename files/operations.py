"""Keys and files. A key is reserved, then published by the transaction that shows it, or declared dead."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.core.files.storage import default_storage

from core import db
from core.ids import new_id
from files.models import StoredFile, StoredObject

ABANDONED_WRITE = timedelta(hours=24)  # longer than any download: nobody writes under this key any more
REMOVED_AT_ONCE = 50  # objects a housekeeping run takes on


@dataclass(frozen=True, kw_only=True)
class Content:
    """What was stored under a key."""

    content_type: str
    size_bytes: int
    sha256: str


@db.transaction
def reserve_key(*, folder: str, suffix: str, now: datetime) -> str:
    """A fresh key, committed before a byte is written under it, so that no bytes are ever unaccounted for."""
    key = f"{folder}/{now:%Y/%m}/{new_id().hex}{suffix}"
    StoredObject.objects.create(key=key, created_at=now)
    return key


@db.transaction_required
def publish_result(
    *, key: str, owner_id: UUID, task_id: UUID, name: str, content: Content, now: datetime
) -> UUID | None:
    """Show a pending object as the result of a task; None when the key is no longer pending."""
    if not StoredObject.objects.filter(key=key, state=StoredObject.State.PENDING).update(
        state=StoredObject.State.PUBLISHED
    ):
        return None
    file = StoredFile.objects.create(
        owner_id=owner_id,
        kind=StoredFile.Kind.RESULT,
        name=name,
        content_type=content.content_type,
        size_bytes=content.size_bytes,
        sha256=content.sha256,
        stored_id=key,
        task_id=task_id,
        created_at=now,
    )
    return file.pk


@db.transaction
def discard_key(*, key: str, now: datetime) -> bool:
    """Declare a pending key dead; False when it was published meanwhile, which is as it should be."""
    return bool(
        StoredObject.objects.filter(key=key, state=StoredObject.State.PENDING).update(
            state=StoredObject.State.DEAD, dead_at=now
        )
    )


@db.transaction_required
def delete_file(*, file: StoredFile, now: datetime) -> None:
    """Take a file away; its bytes go after the commit, by `remove_dead`, which survives a crash."""
    key = file.stored_id
    file.delete()
    StoredObject.objects.filter(key=key, state=StoredObject.State.PUBLISHED).update(
        state=StoredObject.State.DEAD, dead_at=now
    )


@db.durable
def remove_dead(*, now: datetime) -> int:
    """Remove the bytes of dead keys, and give up keys whose writer is long gone; how many were removed.

    Removing twice is harmless: a missing file counts as removed, and the row is marked only afterwards.
    """
    StoredObject.objects.filter(
        state=StoredObject.State.PENDING, created_at__lt=now - ABANDONED_WRITE
    ).update(state=StoredObject.State.DEAD, dead_at=now)
    keys = list(
        StoredObject.objects.filter(state=StoredObject.State.DEAD, removed_at__isnull=True)
        .order_by("dead_at")
        .values_list("key", flat=True)[:REMOVED_AT_ONCE]
    )
    for key in keys:
        default_storage.delete(key)
        StoredObject.objects.filter(key=key).update(removed_at=now)
    return len(keys)
