"""Real threads with connections of their own, and waits for locks that make an interleaving certain."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from django.db import connection, connections, transaction

T = TypeVar("T")

RACES_SECONDS = 100.0  # all rounds of one race
PATIENCE_SECONDS = 15.0  # a step that takes longer hangs; the test fails and says where


class Call(Generic[T]):
    """A call in a thread of its own. `result()` gives what it returned or raises what it raised."""

    def __init__(self, function: Callable[[], T], *, before: Callable[[], None] = lambda: None) -> None:
        self._function, self._before = function, before
        self._ready = threading.Event()
        self._result: T | None = None
        self.error: BaseException | None = None
        self.backend: int | None = None  # the PostgreSQL process that serves this thread
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            if connection.vendor == "postgresql":
                connection.ensure_connection()
                self.backend = connection.connection.info.backend_pid
            self._ready.set()
            self._before()
            self._result = self._function()
        except BaseException as error:
            self.error = error
        finally:
            self._ready.set()
            connections.close_all()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self, *, patience: float = PATIENCE_SECONDS) -> T:
        self._thread.join(patience)
        assert self.is_over, "the call hangs"
        if self.error is not None:
            raise self.error
        return self._result  # type: ignore[return-value]  # it ended without an error

    def wait_until_it_waits_for_a_lock(self) -> None:
        """Return once PostgreSQL itself says that this call stands behind somebody's lock."""
        assert self._ready.wait(PATIENCE_SECONDS)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            if self.is_over:
                raise AssertionError(f"the call did not wait for anybody: {self.error!r} {self._result!r}")
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'",
                    [self.backend],
                )
                if cursor.fetchone()[0]:
                    return
            time.sleep(0.005)
        raise AssertionError("the call never waited for a lock")


def race(*functions: Callable[[], Any], patience: float = PATIENCE_SECONDS) -> list[Any]:
    """Start all calls at the same moment; what each returned, or the exception that it raised."""
    barrier = threading.Barrier(len(functions))
    calls = [Call(function, before=lambda: _pass(barrier)) for function in functions]
    outcomes = []
    for call in calls:
        try:
            outcomes.append(call.result(patience=patience))
        except Exception as error:  # what a racer raised is what the test judges
            outcomes.append(error)
    return outcomes


def race_to_success(*functions: Callable[[], Any]) -> list[Any]:
    """The same, for calls of which none may fail."""
    outcomes = race(*functions)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return outcomes


def _pass(barrier: threading.Barrier) -> None:
    barrier.wait(PATIENCE_SECONDS)


def race_often(*racers: Callable[[int], Any], rounds: int) -> list[list[Any]]:
    """The same race many times in the same threads: for each round, what each racer returned or raised."""
    barrier = threading.Barrier(len(racers))

    def run(racer: Callable[[int], Any]) -> list[Any]:
        outcomes = []
        for number in range(rounds):
            barrier.wait(PATIENCE_SECONDS)
            try:
                outcomes.append(racer(number))
            except Exception as error:  # what a racer raised is what the test judges
                outcomes.append(error)
        return outcomes

    calls = [Call(lambda racer=racer: run(racer)) for racer in racers]
    return [list(row) for row in zip(*(call.result(patience=RACES_SECONDS) for call in calls), strict=True)]


class Held:
    """A transaction that has done its work and waits to be told to commit or to roll back."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._go = threading.Event()
        self._done = threading.Event()
        self._keep = True
        self._work = work
        self._call = Call(self._run)
        until = time.monotonic() + PATIENCE_SECONDS
        while not (self._done.is_set() or self._call.is_over) and time.monotonic() < until:
            time.sleep(0.002)
        if self._call.error is not None:
            raise self._call.error
        assert self._done.is_set(), "the held transaction did not get its work done"

    def _run(self) -> Any:
        with transaction.atomic():
            result = self._work()
            self._done.set()
            assert self._go.wait(PATIENCE_SECONDS)
            if not self._keep:
                transaction.set_rollback(True)
        return result

    def commit(self) -> Any:
        self._go.set()
        return self._call.result()

    def roll_back(self) -> None:
        self._keep = False
        self._go.set()
        self._call.result()


def body_of(operation: Callable[..., T]) -> Callable[..., T]:
    """An operation without the transaction it opens, to be held open by the test."""
    return operation.__wrapped__  # type: ignore[attr-defined]  # functools.wraps keeps it


def kinds_of(outcomes: Sequence[Any]) -> list[str]:
    """Outcomes by name, sorted: the class of an exception, `ok` for everything else."""
    return sorted(type(item).__name__ if isinstance(item, Exception) else "ok" for item in outcomes)


@contextmanager
def scratch_tables(*statements: str) -> Iterator[None]:
    """Tables of the test alone, dropped afterwards. Their names begin with `scratch_`."""
    with connection.cursor() as cursor:
        _drop_scratch(cursor)
        for statement in statements:
            cursor.execute(statement)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            _drop_scratch(cursor)


def _drop_scratch(cursor: Any) -> None:
    for table in connection.introspection.table_names(cursor):
        if table.startswith("scratch_"):
            cursor.execute(f"DROP TABLE {table}")


def run_sql(statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """One statement in the current transaction; the rows it gave."""
    with connection.cursor() as cursor:
        cursor.execute(statement, list(parameters))
        return cursor.fetchall() if cursor.description else []
