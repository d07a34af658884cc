"""Two operations in threads of their own that go on one step at a time, when they are told to.

A step is a statement, a COMMIT or rollback, or an exchange with a provider, with the code up to the next one.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any

from django.db import connection, connections

from tests.concurrency.footprints import Footprint, footprint_of, footprint_of_commit

PATIENCE_SECONDS = 30.0  # a step that takes longer hangs
QUICK_SECONDS = 0.004  # most steps are over by then, and PostgreSQL need not be asked who waits for whom


class Hangs(AssertionError):
    """A step neither ended nor waited for the other operation's lock."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What an operation does next. `label` is the same each time the same orders are played."""

    label: str
    footprint: Footprint


class At(Enum):
    REST = "rest"  # nothing to do, or done
    GATE = "gate"  # a step is ready
    STEP = "step"  # at it, or waiting for a lock


class Player:
    """A thread with a connection that stops before each step of the operation it was given."""

    def __init__(self, moves: threading.Condition) -> None:
        self._moves = moves
        self.at = At.REST
        self.pending: Step | None = None
        self.outcome: Any = None
        self.backend = 0  # the PostgreSQL process that serves this thread
        self.waits = False  # for a lock of the other
        self._is_dismissed = False  # the play broke off: roll back and go home
        self._written: list[tuple[str, Footprint]] = []
        self._operations: queue.Queue[Callable[[], Any] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def begin(self, operation: Callable[[], Any]) -> None:
        self.at, self.outcome = At.STEP, None
        self._operations.put(operation)

    def leave(self) -> None:
        self._operations.put(None)
        with self._moves:
            self._is_dismissed = True
            self.at = At.STEP
            self._moves.notify_all()
        self._thread.join(PATIENCE_SECONDS)

    def gate(self, step: Step) -> None:
        """Stop until told to go on."""
        with self._moves:
            if self._is_dismissed:
                raise Hangs(f"dismissed before {step.label}")
            self.pending, self.at = step, At.GATE
            self._moves.notify_all()
            if not self._moves.wait_for(lambda: self.at is At.STEP, PATIENCE_SECONDS):
                raise Hangs(f"nobody lets {step.label} go on")
            if self._is_dismissed:
                raise Hangs(f"dismissed before {step.label}")

    def _live(self) -> None:
        try:
            connection.ensure_connection()
            self.backend = connection.connection.info.backend_pid
            commit, rollback = connection._commit, connection._rollback
            connection._commit = lambda: self._end("COMMIT", commit)
            connection._rollback = lambda: self._end("ROLLBACK", rollback)
            with connection.execute_wrapper(self._execute):
                while (operation := self._operations.get()) is not None:
                    self._play(operation)
        finally:
            connections.close_all()

    def _play(self, operation: Callable[[], Any]) -> None:
        playing.set(self)
        self._written = []
        try:
            self.outcome = operation()
        except Exception as error:  # what an operation raised is what the rule judges
            self.outcome = error
        with self._moves:
            self.pending, self.at = None, At.REST
            self._moves.notify_all()

    def _execute(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        text = str(sql)
        if text.startswith("ROLLBACK TO"):
            footprint = footprint_of_commit(self._written)
        else:
            footprint = footprint_of(text, in_transaction=connection.in_atomic_block)
        if not footprint.is_empty:
            self.gate(Step(label=_label(text), footprint=footprint))
            if connection.in_atomic_block:
                self._written.append((text, footprint))
        return execute(sql, params, many, context)

    def _end(self, label: str, act: Callable[[], Any]) -> Any:
        footprint = footprint_of_commit(self._written)
        self._written = []
        if not footprint.is_empty and not self._is_dismissed:
            self.gate(Step(label=label, footprint=footprint))
        return act()


playing: ContextVar[Player | None] = ContextVar("playing", default=None)


def exchange(label: str) -> None:
    """Called by a test's stand-in for the network: the exchange with the provider is one step."""
    player = playing.get()
    if player is not None:
        player.gate(Step(label=label, footprint=Footprint(publishes=frozenset({"provider"}))))


def _label(sql: str) -> str:
    """The statement without what differs from run to run."""
    return " ".join(word for word in sql.split()[:60] if not any(letter.isdigit() for letter in word))[:200]


class Stage:
    """Two players, and the one who says whose step is next."""

    def __init__(self) -> None:
        self._moves = threading.Condition()
        self.players = (Player(self._moves), Player(self._moves))
        self.has_deadlock = False

    def begin(self, operations: Sequence[Callable[[], Any]]) -> None:
        """Start both; each stops before its first step."""
        self.has_deadlock = False
        for player, operation in zip(self.players, operations, strict=True):
            player.waits = False
            player.begin(operation)
            self._settle(player)

    @property
    def ready(self) -> dict[int, Step]:
        """Whose step may be next, and what it is."""
        return {
            number: player.pending
            for number, player in enumerate(self.players)
            if player.at is At.GATE and player.pending is not None
        }

    def step(self, number: int) -> frozenset[int]:
        """One step of a player; who waited for a lock and waits no more."""
        player, other = self.players[number], self.players[1 - number]
        waited = other.waits
        with self._moves:
            player.at = At.STEP
            self._moves.notify_all()
        self._settle(player)
        if other.waits:
            self._settle(other)
        if player.waits and other.waits:
            self.has_deadlock = True  # PostgreSQL ends one of them after a second
            while player.waits and other.waits:
                self._settle(player)
                self._settle(other)
        if player.waits and not other.waits:
            self._settle(player)
        return frozenset({1 - number} if waited and not other.waits else ())

    def leave(self) -> None:
        for player in self.players:
            player.leave()

    def _settle(self, player: Player) -> None:
        """Until the player is at its next step, at rest, or waits for a lock that the other holds."""
        until = time.monotonic() + PATIENCE_SECONDS
        quick = 0.0 if player.waits else QUICK_SECONDS
        while time.monotonic() < until:
            with self._moves:
                if self._moves.wait_for(lambda: player.at is not At.STEP, quick):
                    player.waits = False
                    return
            if self._stands_behind_the_other(player):
                player.waits = True
                return
            quick = 0.001
        raise Hangs(f"after {player.pending}")

    def _stands_behind_the_other(self, player: Player) -> bool:
        other = self.players[1 - self.players.index(player)]
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s = ANY(pg_blocking_pids(%s))", [other.backend, player.backend])
            return bool(cursor.fetchone()[0])


@contextmanager
def stage() -> Iterator[Stage]:
    """A stage whose players' connections are closed in the end."""
    made = Stage()
    try:
        yield made
    finally:
        made.leave()
