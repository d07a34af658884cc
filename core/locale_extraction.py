"""Collecting what is to be translated, from Python files and templates, into a language's `.po` file."""

import io
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

from core.messages import variables_of

# Functions that mark a text, with the positions of (context), text and plural. Babel's own lacks the lazy.
KEYWORDS: dict[str, tuple[int | tuple[int, int] | tuple[int, str], ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "ngettext_noop": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
SOURCE_FOLDERS = (
    "config",
    "core",
    "tombstones",
    "accounts",
    "billing",
    "files",
    "videos",
    "canvases",
    "batches",
    "reconciliation",
    "templates",
)
# Fixed, so that extracting twice gives the same file; history is in version control.
FIRST_REVISION = datetime(2026, 11, 30, tzinfo=UTC)
_TEMPLATE_VARIABLE = re.compile(r"%(?:\(\w+\))?[sd]")
SKIPPED_PARTS = frozenset({"migrations", "__pycache__", "tests"})


@dataclass(frozen=True)
class Untranslated:
    """A text that lacks a translation, or whose translation has other variables."""

    msgid: str
    reason: str


def update_catalogue(project: Path, target: Path, *, locale: str) -> list[Untranslated]:
    """Rewrites `target` with every marked text of the project, keeping translations; returns what is left.

    Texts no longer used stay at the end of the file, marked obsolete, so that a sentence that comes back has
    its translation. Nothing is guessed from similar texts: a wrong sentence about money is worse than an
    English one.
    """
    catalogue = _read(target, locale)
    catalogue.update(collect(project), no_fuzzy_matching=True, update_creation_date=False)
    content = io.BytesIO()
    write_po(content, catalogue, width=0, sort_output=True, include_lineno=False, omit_header=False)
    _replace(target, content.getvalue())
    return untranslated(catalogue)


def collect(project: Path) -> Catalog:
    """Every marked text of the project's Python files and templates, with the files that use it."""
    found = Catalog(charset="utf-8")
    for path in _sources(project):
        content = path.read_bytes() if path.suffix == ".py" else _as_calls(path)
        for line, message, comments, context in extract(
            "python", io.BytesIO(content), keywords=KEYWORDS, comment_tags=("Translators:",)
        ):
            location = (path.relative_to(project).as_posix(), line)
            found.add(message, locations=[location], auto_comments=comments, context=context)
    return found


def untranslated(catalogue: Catalog) -> list[Untranslated]:
    """What lacks a translation or has other `{variables}` in it, in the order of the texts."""
    problems = []
    for message in catalogue:
        if not message.id:
            continue
        originals = message.id if isinstance(message.id, (tuple, list)) else (message.id,)
        translations = message.string if isinstance(message.string, (tuple, list)) else (message.string,)
        if message.fuzzy or not all(translations):
            problems.append(Untranslated(originals[0], "no translation"))
        elif any(_variables(text or "") != _variables(originals[-1]) for text in translations):
            problems.append(Untranslated(originals[0], "other variables"))
    return sorted(problems, key=lambda problem: problem.msgid)


def _variables(text: str) -> frozenset[str]:
    """`{names}`, and the `%(names)s` of templates."""
    of_templates = frozenset(_TEMPLATE_VARIABLE.findall(text))
    try:
        return variables_of(text) | of_templates
    except ValueError:  # a lone brace: an ordinary text, which nobody formats
        return of_templates


def _read(target: Path, locale: str) -> Catalog:
    if not target.exists():
        return Catalog(
            locale=locale,
            project="Oncereel",
            version="1",
            header_comment="# Translations of Oncereel. Update with `manage.py extract_locale`.",
            msgid_bugs_address="Oncereel",
            last_translator="Oncereel",
            language_team="Oncereel",
            charset="utf-8",
            revision_date=FIRST_REVISION,
            creation_date=FIRST_REVISION,
            fuzzy=False,
        )
    with target.open("rb") as file:
        return read_po(file, locale=locale)


def _sources(project: Path) -> Iterator[Path]:
    for folder in SOURCE_FOLDERS:
        for path in sorted((project / folder).rglob("*")):
            if path.suffix in (".py", ".html", ".txt") and SKIPPED_PARTS.isdisjoint(
                path.relative_to(project).parts
            ):
                yield path


def _as_calls(template: Path) -> bytes:
    """The template's translation tags as calls of gettext, without the indentation, which is not Python's."""
    calls = templatize(template.read_text(encoding="utf-8"), origin=str(template))
    return "\n".join(line.strip() for line in calls.splitlines()).encode()


def _replace(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".extracting-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
