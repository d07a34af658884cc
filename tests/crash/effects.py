"""Counts the effects of an operation from outside, and strikes at the one it is told to.

An effect is what another process could see: a statement, a COMMIT, a message, bytes to or from the provider,
a file. All are caught where they leave the process, so a new one is counted without anybody listing it. The
product knows nothing of this: it is laid over one process, which ends soon after.
"""

import os
import re
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from core import nudge
from core.http import connections, deadline

# Note [Faults]
# kill  SIGKILL to itself before the effect; the point after the last effect counts too.
# drop  The database is gone before a statement or COMMIT. On PostgreSQL the connection's socket is shut, and
#       the rest is the real course of things. SQLite has no connection: there the statement is refused, as
#       by a full disk.
# lose  COMMIT, or a statement that is its own transaction, is done and its answer is lost. On PostgreSQL
#       alone: on SQLite the COMMIT is a call in the same process, whose answer cannot get lost.
# sleep The process stands still before the effect until others have taken its work, and longer than its
#       lease by the clock that runs while suspended. Not inside a transaction: its locks keep others out.
KILL, DROP, LOSE, SLEEP = "kill", "drop", "lose", "sleep"
FAULTS = (KILL, DROP, LOSE, SLEEP)
COMMIT, ROLLBACK, END = "COMMIT", "ROLLBACK", "end"
FROM_PROVIDER, TO_PROVIDER = "bytes from provider", "bytes to provider"
SENT = f"{TO_PROVIDER}: POST"  # the beginning of what costs money
_TABLE = re.compile(r'(?:FROM|INTO|UPDATE)\s+"?(\w+)"?', re.IGNORECASE)
_WRITES = ("INSERT", "UPDATE", "DELETE")
_FILE_EVENTS = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
SLEPT_SECONDS = 3600.0  # longer than any lease


@dataclass(frozen=True)
class Fault:
    """What happens at which effect, counted from 1."""

    kind: str
    at: int


class Injector:
    """Counts effects and strikes. `report` is told of each effect before it happens and after it has."""

    def __init__(self, fault: Fault | None, report: Callable[[list[Any]], None]) -> None:
        self._fault = fault
        self._report = report
        self._count = 0
        self._last = ""
        self._databases: set[BaseDatabaseWrapper] = set()  # of all threads; each has its own
        self._lock = threading.Lock()
        self.slept_seconds = 0.0

    @contextmanager
    def effect(self, label: str, database: BaseDatabaseWrapper | None = None) -> Iterator[None]:
        """Around one effect; `database` for those that need its connection."""
        # However the network cuts an answer, nothing of ours lies between two of its pieces.
        if label == FROM_PROVIDER and self._last == FROM_PROVIDER:
            yield
            return
        commits = database is not None and (
            label == COMMIT or (not database.in_atomic_block and label.startswith(_WRITES))
        )
        with self._lock:
            self._count += 1
            number, self._last = self._count, label
            if database is not None:
                self._databases.add(database)
            is_open = any(used.in_atomic_block for used in self._databases)
        kind = "commit" if commits else "statement" if database is not None else "other"
        self._report(["begin", number, label, kind, is_open])
        fault = self._fault.kind if self._fault and self._is_struck(number, label) else None
        self._strike_before(fault, database)
        try:
            yield
        except BaseException:
            self._report(["failed", number])
            raise
        self._report(["done", number])
        if fault == LOSE and database is not None:
            cut(database)
            lost = psycopg.OperationalError("the answer was lost")
            raise OperationalError(str(lost)) from lost

    def end(self) -> None:
        """The point after the last effect."""
        with self.effect(END):
            return

    def _is_struck(self, number: int, label: str) -> bool:
        """Whether this is the effect. A run that has fewer effects than expected is struck at its end."""
        if self._fault is None:
            return False
        return number == self._fault.at or (label == END and number < self._fault.at)

    def _strike_before(self, fault: str | None, database: BaseDatabaseWrapper | None) -> None:
        if fault == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == DROP and database is not None:
            cut(database)
        elif fault == SLEEP:
            os.kill(os.getpid(), signal.SIGSTOP)
            self.slept_seconds = SLEPT_SECONDS


def cut(database: BaseDatabaseWrapper) -> None:
    """End the connection as the network does; on SQLite refuse the statement. See Note [Faults]."""
    if database.vendor == "sqlite":
        full = sqlite3.OperationalError("disk I/O error")
        raise OperationalError(str(full)) from full
    with socket.socket(fileno=os.dup(database.connection.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def label_of(sql: str) -> str:
    """A statement as one reads it in a list: its verb and its table."""
    words = sql.split(None, 2)
    verb = words[0].upper()
    if verb in ("SAVEPOINT", "RELEASE"):
        return verb  # without the savepoint's name, which differs
    if verb == "ROLLBACK":
        return "ROLLBACK TO SAVEPOINT"
    table = _TABLE.search(sql)
    return f"{verb} {table[1]}" if table and verb in ("SELECT", *_WRITES) else " ".join(words[:2]).upper()


def lay_over(injector: Injector) -> None:
    """Lead every effect of this process through the injector."""
    _watch_statements(injector)
    _watch_messages(injector)
    _watch_provider(injector)
    _watch_files(injector)
    _watch_clock(injector)


def _watch_statements(injector: Injector) -> None:
    def watched_execute(execute: Any) -> Any:
        def run(cursor: Any, sql: str, *rest: Any, **named: Any) -> Any:
            with injector.effect(label_of(sql), cursor.db):
                return execute(cursor, sql, *rest, **named)

        return run

    def watched(label: str) -> Callable[[Any], Any]:
        def watch(end: Any) -> Any:
            def run(database: BaseDatabaseWrapper) -> None:
                with injector.effect(label, database):
                    end(database)

            return run

        return watch

    put_over(CursorWrapper, "_execute_with_wrappers", watched_execute)
    put_over(BaseDatabaseWrapper, "_commit", watched(COMMIT))
    put_over(BaseDatabaseWrapper, "_rollback", watched(ROLLBACK))


def put_over(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a function by what is made of it, for the rest of this process."""
    setattr(owner, name, make(getattr(owner, name)))


def _watch_messages(injector: Injector) -> None:
    def ring(self: Any, task: str, ids: dict[str, Any]) -> None:
        with injector.effect(f"message {task}"):
            return  # and nobody hears it: the database alone must be enough

    put_over(nudge.Doorbell, "ring", lambda _: ring)


def _watch_provider(injector: Injector) -> None:
    stream = connections._WatchedStream
    read, write = stream.read, stream.write

    async def watched_read(self: Any, max_bytes: int, timeout: float | None = None) -> bytes:
        with injector.effect(FROM_PROVIDER):
            return await read(self, max_bytes, timeout)

    async def watched_write(self: Any, buffer: bytes, timeout: float | None = None) -> None:
        first = buffer.split(b" ", 1)[0]
        part = first.decode() if first in (b"GET", b"POST", b"PUT") else "body"
        with injector.effect(f"{TO_PROVIDER}: {part}"):
            await write(self, buffer, timeout)

    put_over(stream, "read", lambda _: watched_read)
    put_over(stream, "write", lambda _: watched_write)


def _watch_files(injector: Injector) -> None:
    """Python itself tells of every file that is opened, moved or removed; only fsync it keeps to itself."""
    folder = os.fspath(Path(settings.DATA_DIR))
    sync = os.fsync

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        is_opening = event == "open" and bool((arguments[2] or 0) & _WRITING)
        if not (is_opening or event in _FILE_EVENTS) or not isinstance(arguments[0], str | os.PathLike):
            return
        if os.fspath(arguments[0]).startswith(folder):
            with injector.effect(f"file {event.removeprefix('os.')}"):
                return

    def watched_sync(descriptor: int) -> None:
        with injector.effect("file fsync"):
            sync(descriptor)

    sys.addaudithook(hear)
    put_over(os, "fsync", lambda _: watched_sync)


def _watch_clock(injector: Injector) -> None:
    """The clock that runs while the machine sleeps: what the sleeper missed is added to it."""
    read = time.clock_gettime

    def clock_gettime(clock: int) -> float:
        return read(clock) + (injector.slept_seconds if clock == deadline._CLOCK_ID else 0.0)

    put_over(time, "clock_gettime", lambda _: clock_gettime)
