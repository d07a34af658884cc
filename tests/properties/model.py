"""What an owner's ids and money must be after any sequence of requests: the plainest program that says so."""

from dataclasses import dataclass, field
from enum import StrEnum

PRICE_MICROS = 4_160_000


class Phase(StrEnum):
    """What became of one id."""

    WAITING = "waiting"  # charged, and not sent yet
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"  # not enough money, remembered
    DELETED = "deleted"
    ABANDONED = "abandoned"


FINAL = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED, Phase.REFUSED})


@dataclass
class Entry:
    """One id that the product has seen. `was_sent`: the provider was asked, which costs one job."""

    body: int
    phase: Phase
    charged_micros: int = 0
    was_sent: bool = False
    is_settled: bool = False
    given_micros: int = 0


@dataclass
class Model:
    """One owner. Every method is a request; it answers the HTTP status that the product must answer."""

    balance_micros: int
    entries: dict[int, Entry] = field(default_factory=dict)

    def submit(self, number: int, body: int) -> int:
        entry = self.entries.get(number)
        if entry is None:
            if self.balance_micros < PRICE_MICROS:
                self.entries[number] = Entry(body=body, phase=Phase.REFUSED)
                return 402
            self.balance_micros -= PRICE_MICROS
            self.entries[number] = Entry(body=body, phase=Phase.WAITING, charged_micros=PRICE_MICROS)
            return 201
        if entry.phase in (Phase.DELETED, Phase.ABANDONED):
            return 410
        if entry.body != body:
            return 422
        return 402 if entry.phase is Phase.REFUSED else 200

    def abandon(self, number: int) -> int:
        entry = self.entries.get(number)
        if entry is None:
            self.entries[number] = Entry(body=-1, phase=Phase.ABANDONED)
            return 200
        if entry.phase is Phase.ABANDONED:
            return 200
        return 410 if entry.phase is Phase.DELETED else 409

    def delete(self, number: int) -> int:
        entry = self.entries.get(number)
        if entry is None:
            return 404
        if entry.phase in (Phase.DELETED, Phase.ABANDONED):
            return 410
        if entry.phase not in FINAL:
            return 409
        entry.phase = Phase.DELETED
        return 204

    def cancel(self, number: int) -> int:
        entry = self.entries.get(number)
        if entry is None:
            return 404
        if entry.phase in (Phase.DELETED, Phase.ABANDONED):
            return 410
        if entry.phase is Phase.WAITING:
            entry.phase = Phase.CANCELLED
            self.balance_micros += entry.charged_micros
            return 200
        return 200 if entry.phase is Phase.CANCELLED else 409

    def get(self, number: int) -> int:
        entry = self.entries.get(number)
        if entry is None:
            return 404
        return 410 if entry.phase in (Phase.DELETED, Phase.ABANDONED) else 200

    def work(self) -> None:
        """Every waiting task ends: an odd body fails at the provider."""
        for entry in self.entries.values():
            if entry.phase is Phase.WAITING:
                entry.phase = Phase.FAILED if entry.body % 2 else Phase.COMPLETED
                entry.was_sent = True
                entry.is_settled = entry.phase is Phase.COMPLETED
                self.balance_micros += 0 if entry.is_settled else entry.charged_micros

    def top_up(self, micros: int) -> None:
        self.balance_micros += micros

    def give_goodwill(self, number: int, micros: int) -> bool:
        """Whether support may give this back: only of a settled charge, and never more than it was."""
        entry = self.entries.get(number)
        if entry is None or not entry.is_settled or entry.given_micros + micros > entry.charged_micros:
            return False
        entry.given_micros += micros
        self.balance_micros += micros
        return True

    @property
    def held_micros(self) -> int:
        return sum(e.charged_micros for e in self.entries.values() if e.phase is Phase.WAITING)

    @property
    def charges(self) -> int:
        return sum(1 for entry in self.entries.values() if entry.charged_micros)

    @property
    def jobs(self) -> int:
        """How many jobs the provider must have run: one for each task that was sent."""
        return sum(1 for entry in self.entries.values() if entry.was_sent)
