"""Reads of files."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.core.files.storage import default_storage
from django.db.models import Q

from files.models import StoredFile, StoredObject


def file_of(*, owner_id: UUID, file_id: UUID) -> StoredFile | None:
    """The owner's file; a stranger's is never seen."""
    return StoredFile.objects.filter(owner_id=owner_id, pk=file_id).first()


def list_files(
    *, owner_id: UUID, limit: int, before: tuple[datetime, UUID] | None = None
) -> list[StoredFile]:
    """The owner's files, newest first; `before` is the last row of the page before."""
    files = StoredFile.objects.filter(owner_id=owner_id)
    if before is not None:
        at, key = before
        files = files.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=key))
    return list(files.order_by("-created_at", "-id")[:limit])


def orphans(folder: str = "results") -> Iterator[str]:
    """Stored bytes without a row. There should be none; listed by `audit` for a person to look at."""
    folders, names = default_storage.listdir(folder) if default_storage.exists(folder) else ([], [])
    for name in names:
        key = f"{folder}/{name}"
        if not StoredObject.objects.filter(key=key).exists():
            yield key
    for child in folders:
        yield from orphans(f"{folder}/{child}")
