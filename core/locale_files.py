"""Compiling translations with Babel, without the system's gettext and without Django."""

import os
import tempfile
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po


class InvalidCatalogue(ValueError):
    """A `.po` file that cannot be read."""


def compile_catalogues(root: Path) -> list[Path]:
    """Writes a `.mo` beside each `.po` under `root` that has changed or has none; returns what was written.

    Each file appears in one step, so that a process starting meanwhile reads the old or the new one, whole.
    A `.mo` gets the time of the `.po` it was made from: any other time means another `.po`, older or newer.
    Entries marked fuzzy are left out, as nobody has confirmed them.

    Raises:
        InvalidCatalogue: a `.po` file is broken; its `.mo` is left as it was.
    """
    return [compiled for source in sorted(root.glob("*/LC_MESSAGES/*.po")) if (compiled := _compile(source))]


def _compile(source: Path) -> Path | None:
    target = source.with_suffix(".mo")
    modified = source.stat().st_mtime_ns
    if target.exists() and target.stat().st_mtime_ns == modified:
        return None
    locale = source.parent.parent.name
    try:
        with source.open("rb") as file:
            catalogue = read_po(file, locale=locale, abort_invalid=True)
    except (PoFileError, ValueError) as error:
        raise InvalidCatalogue(f"{source.name} of {locale}: {error}") from error
    descriptor, name = tempfile.mkstemp(dir=source.parent, prefix=".compiling-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            write_mo(file, catalogue)
        os.chmod(name, 0o644)  # mkstemp gives 0600, and the web role may be another user
        os.utime(name, ns=(modified, modified))
        os.utime(name, ns=(modified, modified))
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target
