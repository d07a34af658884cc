"""The words in which operations say what commits together.

* `@transaction`: this use case is one transaction.
* `@transaction_required`: part of the caller's transaction.
* `@durable`: talks to the network, so no transaction may be open.

After the idea of django-subatomic. Nothing else in the project uses Django's `atomic` or `on_commit`.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

from django.apps import apps
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db import transaction as django_transaction
from django.db.models import Model, UniqueConstraint
from django.utils import timezone

from core.errors import OutcomeNotKnown

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)

SAVE_PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)  # together longer than a database takes to restart
COMMIT_TRIES = 3  # a lost connection is usually back at once; more tries would only hold the client


class TransactionMisused(AssertionError):
    """Code ran with a transaction open that must not be, or without the one it is part of."""


class OutcomeUnknown(Exception):
    """The connection broke while a transaction was committing; it may or may not have been kept."""


class NothingSaved(Exception):
    """The database could not take the transaction (no connection, lock wait over); nothing was kept."""


def transaction(function: Callable[P, R]) -> Callable[P, R]:
    """This use case is one transaction; refused inside another one."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with django_transaction.atomic(durable=True):
            return function(*args, **kwargs)

    return run


def transaction_required(function: Callable[P, R]) -> Callable[P, R]:
    """Part of the caller's transaction; refused without one."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not connection.in_atomic_block:
            raise TransactionMisused(f"{function.__qualname__} is part of a transaction and none is open")
        return function(*args, **kwargs)

    return run


def _open_transaction() -> bool:
    """Whether a transaction of the project (not the one a test case wraps around itself) is open."""
    return any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


def durable(function: Callable[P, R]) -> Callable[P, R]:
    """Talks to the network, or must see its writes survive: no transaction may be open."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if _open_transaction():
            raise TransactionMisused(f"{function.__qualname__} leaves the building inside a transaction")
        return function(*args, **kwargs)

    return run


@contextmanager
def savepoint() -> Iterator[None]:
    """Undo only what happens inside when it raises; the surrounding transaction goes on."""
    if not connection.in_atomic_block:
        raise TransactionMisused("a savepoint needs a transaction")
    with django_transaction.atomic():
        yield


def after_commit(action: Callable[[], Any]) -> None:
    """Run `action` once the surrounding transaction is durable; never if it rolls back."""
    django_transaction.on_commit(action, robust=True)


def now() -> datetime:
    """The database's clock: leases of several machines are judged by one clock.

    On SQLite the database is this process, so its clock is the host's.
    """
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        instant: datetime = cursor.fetchone()[0]
    return instant


# Note [Repeating a transaction whose answer was lost]
# When the connection dies, a client cannot know whether its COMMIT took effect. A plain SELECT may not see a
# commit that is still under way in the old backend. Repeating the same transaction can: its first INSERT
# waits on the unique index for the old one to end and then tells the truth. So only transactions whose first
# statement inserts a unique row of their own may go through here.
def run_until_known(function: Callable[[], R]) -> R:
    """Run an idempotent transaction again when its connection is lost, see the note above.

    Raises: NothingSaved when no try got as far as an open transaction that could have committed;
    OutcomeUnknown when one did and its end is not known.
    """
    may_have_committed = False
    last: Exception | None = None
    for _ in range(COMMIT_TRIES):
        try:
            connection.ensure_connection()
        except (OperationalError, InterfaceError) as lost:
            last = lost
            continue
        try:
            return function()
        except (OperationalError, InterfaceError) as lost:
            if _open_transaction():
                raise
            last = lost
            if not connection_lost(lost):
                break  # this try saved nothing; what an earlier one did is still not known
            may_have_committed = True
            connection.close()
    if may_have_committed:
        raise OutcomeUnknown(str(last)) from last
    raise NothingSaved(str(last)) from last


def run_until_saved(function: Callable[[], R]) -> R:
    """Run what is safe to run twice, again after pauses while the database is away or refuses it.

    For what must not be lost because it comes only once. Raises: the last error.
    """
    for pause in SAVE_PAUSES_SECONDS:
        try:
            return function()
        except (OperationalError, InterfaceError) as refused:
            if _open_transaction():
                raise
            if connection_lost(refused):
                connection.close()
            log.warning("database_refused", extra={"error": str(refused)[:200], "pause_seconds": pause})
            time.sleep(pause)
    return function()


@contextmanager
def commit_in_doubt() -> Iterator[None]:
    """Around a change: a connection lost in here may be lost after the COMMIT.

    Raises: OutcomeNotKnown, as "nothing was saved" could be untrue.
    """
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        if connection_lost(error):
            raise OutcomeNotKnown from error
        raise


@contextmanager
def change_committed() -> Iterator[None]:
    """Around the reads that tell of a committed change: whatever refuses them, the change is kept.

    Raises: OutcomeNotKnown, as "nothing was saved" would be untrue.
    """
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise OutcomeNotKnown from error


def connection_lost(error: DatabaseError | InterfaceError) -> bool:
    """Whether the connection itself is gone, rather than one statement refused on a healthy one."""
    if isinstance(error, InterfaceError):
        return True
    if connection.vendor == "sqlite":
        return False  # "database is locked" and the like: the statement was refused, the file is there
    cause = error.__cause__
    # psycopg gives a SQLSTATE to everything the server itself said; class 57P is the server going away.
    state = getattr(cause, "sqlstate", None)
    return state is None or str(state).startswith(("57P", "08"))


_SQLITE_UNIQUE = re.compile(r"UNIQUE constraint failed: (?P<columns>.+)")
_SQLITE_NAMED = re.compile(r"CHECK constraint failed: (?P<name>\w+)|^(?P<guard>[a-z_]+)$")


@lru_cache(maxsize=1)
def _unique_names() -> dict[str, str]:
    """`table.column, table.column` → constraint name: SQLite reports only columns.

    Partial indexes on the same columns cannot be told apart there, so the name of each is given.
    """
    names: dict[str, str] = {}
    for model in apps.get_models():
        table = model._meta.db_table
        for constraint in model._meta.constraints:
            if isinstance(constraint, UniqueConstraint) and constraint.fields:
                columns = [_column(model, field) for field in constraint.fields]
                reported = ", ".join(f"{table}.{column}" for column in columns)
                earlier = f"{names[reported]} or " if reported in names else ""
                names[reported] = earlier + constraint.name
    return names


def _column(model: type[Model], field: str) -> str:
    column = getattr(model._meta.get_field(field), "column", None)
    if column is None:
        raise TypeError(f"{model.__name__}.{field} has no column")
    return str(column)


def broken_rule(error: DatabaseError) -> str:
    """The name of the constraint or trigger that refused a statement; the driver's text when it has none.

    The one place where a unique violation gets its name on both databases.
    """
    diagnosis = getattr(error.__cause__, "diag", None)
    if diagnosis is not None and diagnosis.constraint_name:
        return str(diagnosis.constraint_name)
    text = str(error)
    if unique := _SQLITE_UNIQUE.search(text):
        return _unique_names().get(unique["columns"], unique["columns"])
    if named := _SQLITE_NAMED.search(text):
        return named["name"] or named["guard"]
    return text
