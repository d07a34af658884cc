"""What rows of objects and files must show together, and what lies in the storage beside them."""

from collections.abc import Iterator
from itertools import islice

from django.core.files.storage import default_storage

from core.audit import Rule
from files.models import StoredObject

NAMES_AT_ONCE = 500  # SQLite takes a limited number of values in one statement

RULES = [
    Rule(
        says="a published object is shown by a file, and a file shows a published object",
        sql="""
        SELECT object.key, object.state, file.id FROM files_storedobject AS object
        LEFT JOIN files_storedfile AS file ON file.stored_id = object.key
        WHERE (object.state = 'published' AND file.id IS NULL)
          OR (object.state <> 'published' AND file.id IS NOT NULL)
        """,
    ),
]


def orphan_bytes() -> Iterator[str]:
    """Names in the storage that no row knows, or whose row says that they were removed.

    A listing and a row cannot be read in one moment, but a row is committed before its first byte is
    written and marked as removed only after its last one is gone, so what is named here is an orphan.
    """
    names = _names("")
    while chunk := list(islice(names, NAMES_AT_ONCE)):
        known = set(
            StoredObject.objects.filter(key__in=chunk, removed_at__isnull=True).values_list("key", flat=True)
        )
        yield from (name for name in chunk if name not in known)


def missing_bytes() -> Iterator[str]:
    """Keys that a file shows and the storage does not have. A file deleted meanwhile is not among them."""
    published = StoredObject.objects.filter(state=StoredObject.State.PUBLISHED)
    for key in published.order_by("key").values_list("key", flat=True).iterator(chunk_size=NAMES_AT_ONCE):
        if not default_storage.exists(key) and published.filter(pk=key).exists():
            yield key


def _names(folder: str) -> Iterator[str]:
    try:
        folders, names = default_storage.listdir(folder)
    except FileNotFoundError:  # nothing was ever stored
        return
    prefix = f"{folder}/" if folder else ""
    yield from (f"{prefix}{name}" for name in sorted(names))
    for name in sorted(folders):
        yield from _names(f"{prefix}{name}")
