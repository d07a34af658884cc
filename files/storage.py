"""The folder that holds files in the embedded default; every byte is on the disk before anyone is told."""

import os
from typing import Any

from django.core.files.storage import FileSystemStorage


def sync_folder(path: str) -> None:
    """Make a folder's entries durable (a file's own fsync does not cover its name)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class DurableFolder(FileSystemStorage):
    """A folder whose files are fsynced, with their folder, before `save` returns."""

    def _save(self, name: str, content: Any) -> str:
        saved = super()._save(name, content)  # type: ignore[misc]  # missing in the stubs
        path = self.path(saved)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(os.path.dirname(path))
        return saved
