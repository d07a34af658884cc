"""The audit: every invariant that rows can show, re-derived by set-based SQL in one snapshot.

Each app lists its rules in `<app>/audit.py` as `RULES`. Constraints and guards stop a wrong row from being
written; the audit finds one that is there all the same: written with triggers switched off, by a restore, or
by a defect that no single row shows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from core import invariants

TRIGGERS = "the installed triggers are the declared ones"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """An invariant and the query that finds its violations: a row each, its columns the ids to look at.

    The SQL is one both databases understand. Columns that hold a UUID end in `_id` or are called `id`, as
    SQLite keeps UUIDs as text.
    """

    says: str
    sql: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A rule with the rows that break it, each as `column=value` words."""

    says: str
    violations: list[str]


def declared_rules() -> list[Rule]:
    """The rules of all installed apps, in the order of the apps."""
    rules: list[Rule] = []
    for config in apps.get_app_configs():
        if config.name != "core" and find_spec(f"{config.name}.audit"):
            rules += import_module(f"{config.name}.audit").RULES
    return rules


def findings() -> list[Finding]:
    """Check every rule in one snapshot. Writers are never locked out, nor waited for.

    Inside a transaction of the caller it reads what that transaction sees.
    """
    found = []
    with _snapshot() as database:
        for rule in declared_rules():
            with database.cursor() as cursor:
                cursor.execute(rule.sql)
                names = [column[0] for column in cursor.description]
                violations = [_in_words(names, row) for row in cursor.fetchall()]
            found.append(Finding(says=rule.says, violations=violations))
    found.append(Finding(says=TRIGGERS, violations=[f"trigger={name}" for name in invariants.missing()]))
    return found


@contextmanager
def _snapshot() -> Iterator[BaseDatabaseWrapper]:
    """A connection whose reads all see one moment.

    It is a connection of its own, and its transaction is begun by hand: under SQLite's `IMMEDIATE` mode even
    a reading `atomic()` would take the write lock and keep every submission out.
    """
    if connection.in_atomic_block:
        yield connection
        return
    database = connection.copy()
    begin = "ISOLATION LEVEL REPEATABLE READ READ ONLY" if database.vendor == "postgresql" else "DEFERRED"
    try:
        with database.cursor() as cursor:
            cursor.execute(f"BEGIN {begin}")
        yield database
        with database.cursor() as cursor:
            cursor.execute("ROLLBACK")
    finally:
        database.close()


def _in_words(names: list[str], row: tuple[Any, ...]) -> str:
    return " ".join(
        f"{name}={_as_id(name, value)}" for name, value in zip(names, row, strict=True) if value is not None
    )


def _as_id(name: str, value: Any) -> Any:
    """One spelling of a UUID, whichever database it comes from."""
    if (name == "id" or name.endswith("_id")) and isinstance(value, str) and len(value) == 32:
        return UUID(hex=value)
    return value
