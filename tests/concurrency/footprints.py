"""What one step of an operation touches, and which two steps may not change places."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.apps import apps
from django.db.models import ForeignKey, UniqueConstraint

from core import invariants

TABLE = re.compile(r'(?:FROM|JOIN|INTO|UPDATE)\s+"?(\w+)"?')
NOTHING: frozenset[str] = frozenset()


# Note [Steps that change places]
# Two neighbouring steps of different operations are run in one order only when both orders give the same.
# All transactions are READ COMMITTED, so what a step can notice of the other operation is only this:
# * what was committed: a COMMIT (and a statement of its own, outside transactions) keeps its place before and
#   after every step that reads, locks or writes one of the tables it publishes. A rollback counts as one.
# * locks: two steps that update, delete or lock rows of one table keep their places; so does a foreign-key
#   check, which shares a row. Rows of one table are not told apart, which only runs more orders than needed.
# * unique keys: an INSERT keeps its place among INSERTs and updates of its table where the table has a key
#   that is not made at random.
# A plain read does not see what is not committed, and never waits. Reading the clock is no step: it happens
# at the end of the step before, so that every time that an operation holds is as old as it can be.
# Guards read other tables by their trigger's own statements, and foreign keys are checked at the COMMIT.
# Whoever waited for a lock goes on as soon as it has it. `test_the_reduction_loses_no_outcome` compares with
# all orders of a small pair.
@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Tables by what a step does to them. `publishes`: shows to others, with its locks let go."""

    reads: frozenset[str] = NOTHING
    locks: frozenset[str] = NOTHING
    shares: frozenset[str] = NOTHING
    inserts: frozenset[str] = NOTHING
    publishes: frozenset[str] = NOTHING

    @property
    def touches(self) -> frozenset[str]:
        return self.reads | self.locks | self.shares | self.inserts

    @property
    def writes(self) -> frozenset[str]:
        return self.locks | self.inserts

    @property
    def is_empty(self) -> bool:
        return not (self.touches | self.publishes)


def depends(one: Footprint, other: Footprint) -> bool:
    """Whether these steps of two operations keep their places, see the note above."""
    return bool(
        one.publishes & other.touches
        or other.publishes & one.touches
        or one.locks & (other.locks | other.shares)
        or one.shares & other.locks
        or (one.inserts & other.inserts | one.inserts & other.locks | one.locks & other.inserts)
        & _tables_with_keys()
    )


def footprint_of(sql: str, *, in_transaction: bool) -> Footprint:
    """What a statement touches, with the reads of the triggers that it fires."""
    tables = frozenset(TABLE.findall(sql)) & _tables()
    verb = sql.lstrip("( ").partition(" ")[0].upper()
    if verb not in ("SELECT", "INSERT", "UPDATE", "DELETE"):
        return Footprint()
    if verb == "SELECT":
        return Footprint(locks=tables) if " FOR UPDATE" in sql else Footprint(reads=tables)
    target = frozenset(TABLE.findall(sql)[:1])
    reads = (tables - target) | _read_by_guards(next(iter(target)), verb)
    published = target if not in_transaction else NOTHING
    if verb == "INSERT":
        return Footprint(reads=reads, inserts=target, publishes=published)
    return Footprint(reads=reads, locks=target, publishes=published)


def footprint_of_commit(statements: Iterable[tuple[str, Footprint]]) -> Footprint:
    """Shows all that the transaction wrote, lets go of its locks, and checks its foreign keys."""
    published: set[str] = set()
    shares: set[str] = set()
    for sql, footprint in statements:
        published |= footprint.writes
        if sql.startswith("INSERT"):
            shares |= {to for table in footprint.inserts for to in _foreign_keys()[0].get(table, set())}
        if sql.startswith("DELETE"):
            shares |= {of for table in footprint.locks for of in _foreign_keys()[1].get(table, set())}
    return Footprint(publishes=frozenset(published), shares=frozenset(shares))


@lru_cache(maxsize=1)
def _tables() -> frozenset[str]:
    return frozenset(model._meta.db_table for model in apps.get_models(include_auto_created=True))


@lru_cache(maxsize=1)
def _tables_with_keys() -> frozenset[str]:
    """Tables in which two new rows may clash."""
    return frozenset(model._meta.db_table for model in apps.get_models() if _may_clash(model))


def _may_clash(model: Any) -> bool:
    pk = model._meta.pk
    is_random = pk.has_default() or pk.get_internal_type().endswith("AutoField")
    has_unique = any(field.unique for field in model._meta.local_concrete_fields if field is not pk)
    has_unique |= any(isinstance(item, UniqueConstraint) for item in model._meta.constraints)
    return not is_random or has_unique


@lru_cache(maxsize=1)
def _foreign_keys() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Table → the tables it refers to; table → the tables that refer to it."""
    refers: dict[str, set[str]] = {}
    referred: dict[str, set[str]] = {}
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.local_concrete_fields:
            if isinstance(field, ForeignKey) and field.db_constraint:
                other = field.related_model._meta.db_table
                refers.setdefault(model._meta.db_table, set()).add(other)
                referred.setdefault(other, set()).add(model._meta.db_table)
    return refers, referred


@lru_cache
def _read_by_guards(table: str, event: str) -> frozenset[str]:
    conditions = [
        guard.when for guard in invariants.declared() if guard.table == table and guard.event == event
    ]
    return frozenset(TABLE.findall(" ".join(conditions))) & _tables()
