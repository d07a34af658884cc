"""Statements whose SQL is made once per process, and planned once per connection on PostgreSQL.

For the few that every request runs: there, building the SQL costs Django several times what the database
needs to answer. The ORM stays the source of the SQL, so a changed model changes the statement.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.base import ModelState
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
        compiler: Any = queryset.query.get_compiler(queryset.db)
        self._statement = Statement(*compiler.as_sql())
        columns = [row[0] for row in compiler.select[: compiler.col_count]]
        self._converters = compiler.get_converters(columns)
        self._maker = _Maker(compiler.select, compiler.klass_info)
        self._annotations = compiler.annotation_col_map

    def run(self, values: dict[str, Any]) -> list[M]:
        with _cursor() as cursor:
            cursor.execute(self._statement.sql, self._statement.bind(values))
            rows = cursor.fetchall()
        return [self._make(list(row)) for row in rows]

    def _make(self, row: list[Any]) -> M:
        for position, (converters, expression) in self._converters.items():
            for convert in converters:
                row[position] = convert(row[position], expression, connection)
        made: M = self._maker.make(row)
        for name, position in self._annotations.items():
            setattr(made, name, row[position])
        return made


class _Maker:
    """Makes a model's instance, and those that it is joined with, out of a row.

    Django's own way calls the constructor, which costs more than the whole statement; it does nothing for
    rows that come from the database but to set these attributes. The project has no signals to send.
    """

    def __init__(self, select: list[Any], found: dict[str, Any]) -> None:
        self._model = found["model"]
        columns = found["select_fields"]
        self._names = [select[position][0].target.attname for position in columns]
        self._begin, self._end = columns[0], columns[-1] + 1
        if columns != list(range(self._begin, self._end)):
            raise TypeError(f"the columns of {self._model.__name__} do not lie together")
        self._key = self._begin + self._names.index(self._model._meta.pk.attname)
        self._joined = [
            (_Maker(select, other), other["local_setter"], other["remote_setter"])
            for other in found.get("related_klass_infos", [])
        ]

    def make(self, row: list[Any]) -> Any:
        """The instance; None where the join found no row."""
        if row[self._key] is None:
            return None
        made = self._model.__new__(self._model)
        made.__dict__.update(zip(self._names, row[self._begin : self._end], strict=True))
        made._state = ModelState()
        made._state.adding, made._state.db = False, connection.alias
        for maker, set_here, set_there in self._joined:
            other = maker.make(row)
            set_here(made, other)
            if other is not None:
                set_there(other, made)
        return made


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
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            yield cursor
        return
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    wire = connection.connection
    # One for the life of a connection: making it costs as much as a small statement. Each use fetches all.
    bound = wire.__dict__.get("bound_cursor")
    if bound is None:
        bound = wire.__dict__["bound_cursor"] = psycopg.Cursor(wire)
    yield connection._prepare_cursor(bound)  # type: ignore[attr-defined]  # missing in the stubs
