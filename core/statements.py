"""Statements whose SQL is made once per process, and planned once per connection on PostgreSQL.

For the few that every request runs: there, building the SQL costs Django several times what the database
needs to answer. The ORM stays the source of the SQL, so a changed model changes the statement.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.query import ModelIterable
from django.db.models.sql import InsertQuery, UpdateQuery

M = TypeVar("M", bound=Model)

# Note [Bound by the server]
# PostgreSQL plans a statement once when its values travel beside it and not in its text. Django can do that
# for everything (`server_side_binding`), and must not here: it gives F("balance_micros") + 10_000_000_000 a
# four-byte integer, and the driver cuts the amount to 1_410_065_408 without a word. So only the statements of
# this module are bound by the server, and every whole number in them is sent in as many bytes as it needs.


class Parameter(Expression):
    """A place in a compiled statement that each run fills: `filter(pk=Parameter("pk", UUIDField()))`."""

    def __init__(self, name: str, field: "Field[Any, Any]") -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class Statement:
    """SQL with places, as one database wants it."""

    def __init__(self, sql: str, params: Iterable[Any]) -> None:
        self.sql, self._params = sql, tuple(params)

    def bind(self, values: dict[str, Any]) -> list[Any]:
        """The parameters of one run. Raises: KeyError for a place that was given no value."""
        return [
            _sized(param.output_field.get_db_prep_value(values[param.name], connection))
            if isinstance(param, Parameter)
            else _sized(param)
            for param in self._params
        ]


def _sized(value: Any) -> Any:
    """A whole number without the width that Django gives it; see Note [Bound by the server]."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


class CompiledQuery(Generic[M]):
    """A query of whole models. `build` makes the queryset; it runs once for each kind of database."""

    def __init__(self, build: Callable[[], QuerySet[M]]) -> None:
        self._build = build
        self._plans: dict[str, _Plan[M]] = {}

    def all(self, **values: Any) -> list[M]:
        plan = self._plans.get(connection.vendor)
        if plan is None:
            plan = self._plans[connection.vendor] = _Plan(self._build())
        return plan.run(values)

    def first(self, **values: Any) -> M | None:
        """The row, of a query by a unique key, or None."""
        return next(iter(self.all(**values)), None)

    def one(self, **values: Any) -> M:
        """The one row that must be there. Raises: LookupError."""
        found = self.first(**values)
        if found is None:
            raise LookupError(f"no row for {values}")
        return found


class _Plan(Generic[M]):
    def __init__(self, queryset: QuerySet[M]) -> None:
        compiler = queryset.query.get_compiler(queryset.db)
        self._statement = Statement(*compiler.as_sql())
        self._converters = compiler.get_converters([row[0] for row in compiler.select[: compiler.col_count]])
        self._compiler, self._db = compiler, queryset.db

    def run(self, values: dict[str, Any]) -> list[M]:
        with _cursor() as cursor:
            cursor.execute(self._statement.sql, self._statement.bind(values))
            rows = cursor.fetchall()
        # From rows to models in Django's own way, with a compiler that has nothing left to do.
        compiler: Any = copy(self._compiler)
        compiler.connection = connection
        compiler.execute_sql = lambda *_, **__: [rows]
        compiler.get_converters = lambda _: self._converters
        query = SimpleNamespace(get_compiler=lambda using: compiler)
        queryset: Any = SimpleNamespace(db=self._db, query=query, _known_related_objects={})
        return list(ModelIterable(queryset))


class CompiledUpdate:
    """An UPDATE of the rows of a queryset: `CompiledUpdate(build, tries=F("tries") + Parameter(…))`."""

    def __init__(self, build: Callable[[], QuerySet[Any]], **changes: Any) -> None:
        self._build, self._changes = build, changes
        self._statements: dict[str, Statement] = {}

    def run(self, **values: Any) -> int:
        """How many rows were changed."""
        statement = self._statement()
        with _cursor() as cursor:
            cursor.execute(statement.sql, statement.bind(values))
            return int(cursor.rowcount)

    def run_many(self, rows: Sequence[dict[str, Any]]) -> None:
        """Run once for each of `rows`, in one exchange with the database."""
        statement = self._statement()
        with _cursor() as cursor:
            cursor.executemany(statement.sql, [statement.bind(row) for row in rows])

    def _statement(self) -> Statement:
        statement = self._statements.get(connection.vendor)
        if statement is None:
            statement = self._statements[connection.vendor] = self._compile()
        return statement

    def _compile(self) -> Statement:
        queryset = self._build()
        query: Any = queryset.query.chain(UpdateQuery)
        query.add_update_values(self._changes)
        return Statement(*query.get_compiler(queryset.db).as_sql())


_inserts: dict[tuple[str, type[Model]], str] = {}


def insert(row: Model) -> None:
    """Insert one new row, as `save(force_insert=True)` does, whose primary key is known beforehand."""
    fields = row._meta.local_concrete_fields
    sql = _inserts.get((connection.vendor, type(row)))
    if sql is None:
        query = InsertQuery(type(row))
        query.insert_values(fields, [row])
        [(sql, _)] = query.get_compiler(connection.alias).as_sql()
        _inserts[connection.vendor, type(row)] = sql
    values = [
        _sized(field.get_db_prep_save(getattr(row, field.attname), connection=connection)) for field in fields
    ]
    with _cursor() as cursor:
        cursor.execute(sql, values)
    row._state.adding, row._state.db = False, connection.alias


@contextmanager
def _cursor() -> Iterator[CursorWrapper]:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.cursor = psycopg.Cursor(connection.connection)
        yield cursor
