"""Expressions that constraints of several apps share."""

from functools import reduce
from operator import and_
from typing import Any

from django.db.models import BooleanField, F, Func, Q


class IsInteger(Func):
    """True when the stored value is an integer.

    SQLite stores 1.5 in an integer column if told to; PostgreSQL's column type already refuses it, so there
    the check only needs to be true.
    """

    function = "IsInteger"
    arity = 1
    output_field = BooleanField()
    conditional = True

    template = "(%(expressions)s IS NULL OR %(expressions)s = %(expressions)s)"

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self.as_sql(
            compiler,
            connection,
            template="(typeof(%(expressions)s) IN ('integer', 'null'))",
            **extra,
        )


def is_integer(*fields: str) -> Q:
    """A condition for a CHECK: each of these columns holds an integer, or nothing."""
    return reduce(and_, (Q(IsInteger(F(field))) for field in fields))
