"""Database triggers, declared once for both databases.

Each app lists its guards in `<app>/invariants.py` as `GUARDS`. `manage.py migrate` drops them before and
installs them after it runs (Django rebuilds tables on SQLite and would lose them, or fail on them), and a
system check compares what is declared with what is installed.

First choice is a declarative constraint on the model; a guard is only for what one row cannot see alone.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

from django.apps import apps
from django.db import connection

Event = Literal["INSERT", "UPDATE", "DELETE"]


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Refuses an event on a table, by name, when `when` is true.

    `when` is an SQL expression over OLD and NEW that both databases understand; `IS DISTINCT FROM` is
    written as on PostgreSQL. `only` limits a guard to one database.
    """

    name: str
    table: str
    event: Event
    when: str
    only: Literal["sqlite", "postgresql"] | None = None

    def statements(self, vendor: str) -> list[str]:
        """The SQL that installs this guard, replacing an older one of the same name."""
        if vendor == "sqlite":
            when = self.when.replace("IS NOT DISTINCT FROM", "IS").replace("IS DISTINCT FROM", "IS NOT")
            return [
                f"DROP TRIGGER IF EXISTS {self.name}",
                f"CREATE TRIGGER {self.name} BEFORE {self.event} ON {self.table} FOR EACH ROW WHEN ({when}) "
                f"BEGIN SELECT RAISE(ABORT, '{self.name}'); END",
            ]
        row = "OLD" if self.event == "DELETE" else "NEW"
        return [
            f"CREATE OR REPLACE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS $guard$ BEGIN "
            f"IF ({self.when}) THEN RAISE EXCEPTION '{self.name}' USING ERRCODE = 'check_violation', "
            f"CONSTRAINT = '{self.name}', TABLE = '{self.table}'; END IF; RETURN {row}; END $guard$",
            f"CREATE OR REPLACE TRIGGER {self.name} BEFORE {self.event} ON {self.table} "
            f"FOR EACH ROW EXECUTE FUNCTION {self.name}()",
        ]


def append_only(*, table: str, noun: str, unique: Sequence[Sequence[str]]) -> list[Guard]:
    """Rows of `table` can be added and never changed or removed.

    `unique` lists the table's unique keys: on SQLite an `INSERT OR REPLACE` would remove the row that
    holds one of them without asking the DELETE trigger, unless recursive triggers are on.
    """
    clash = " OR ".join(
        "(" + " AND ".join(f"existing.{column} = NEW.{column}" for column in columns) + ")"
        for columns in unique
    )
    return [
        Guard(name=f"{noun}_is_never_changed", table=table, event="UPDATE", when="TRUE"),
        Guard(name=f"{noun}_is_never_removed", table=table, event="DELETE", when="TRUE"),
        Guard(
            name=f"{noun}_is_never_replaced",
            table=table,
            event="INSERT",
            when=f"EXISTS (SELECT 1 FROM {table} AS existing WHERE {clash})",
            only="sqlite",
        ),
    ]


def never_removed(*, table: str, noun: str) -> Guard:
    return Guard(name=f"{noun}_is_never_removed", table=table, event="DELETE", when="TRUE")


def frozen_columns(*, table: str, noun: str, columns: Sequence[str]) -> Guard:
    """These columns keep the value they were inserted with."""
    changed = " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in columns)
    return Guard(name=f"{noun}_keeps_what_it_was_made_with", table=table, event="UPDATE", when=changed)


def declared() -> list[Guard]:
    """Every guard of the installed apps that the connected database has."""
    guards: list[Guard] = []
    for config in apps.get_app_configs():
        if find_spec(f"{config.name}.invariants") and config.name != "core":
            guards += import_module(f"{config.name}.invariants").GUARDS
    return [guard for guard in guards if guard.only in (None, connection.vendor)]


def installed() -> dict[str, str]:
    """Name → definition of our triggers in the connected database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        else:
            cursor.execute(
                "SELECT t.tgname, pg_get_triggerdef(t.oid) || ' ' || pg_get_functiondef(t.tgfoid) "
                "FROM pg_trigger t "
                "JOIN pg_proc p ON p.oid = t.tgfoid "
                "WHERE NOT t.tgisinternal AND t.tgname = p.proname AND t.tgenabled <> 'D'"
            )
        return dict(cursor.fetchall())


def missing() -> list[str]:
    """Names of declared guards that are not installed, or not as declared."""
    present = installed()
    return [guard.name for guard in declared() if not _same(guard, present.get(guard.name))]


def _same(guard: Guard, definition: str | None) -> bool:
    if definition is None:
        return False
    statements = guard.statements(connection.vendor)
    if connection.vendor == "sqlite":
        return definition == statements[1]
    # Where it fires, and on every row: a WHEN of the trigger itself would come between the two.
    fires = (
        rf"BEFORE {guard.event} ON (\w+\.)?{guard.table} "
        rf"FOR EACH ROW EXECUTE FUNCTION (\w+\.)?{guard.name}\(\)"
    )
    return re.search(fires, definition) is not None and f"IF ({guard.when}) THEN" in definition


def install() -> None:
    """Bring the database's triggers to what is declared; safe to run again."""
    with connection.cursor() as cursor:
        for guard in declared():
            for statement in guard.statements(connection.vendor):
                cursor.execute(statement)


def remove() -> None:
    """Drop our triggers. Only `migrate` and the tests' reset use this."""
    tables = {guard.name: guard.table for guard in declared()}
    with connection.cursor() as cursor:
        for name in installed():
            if connection.vendor == "sqlite":
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
            elif name in tables:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {tables[name]}")


@contextmanager
def lifted_for_tests() -> Iterator[None]:
    """The one back door: a test database may be emptied between tests. Refused on any other."""
    name = str(connection.settings_dict["NAME"])
    if not name.rsplit("/", 1)[-1].startswith("test"):
        raise PermissionError(f"{name} is not a test database; its triggers stay")
    remove()
    try:
        yield
    finally:
        install()
