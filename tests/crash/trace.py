"""What a struck process told of its effects before it died, and how it ended."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.crash.effects import (
    COMMIT,
    DROP,
    END,
    FROM_PROVIDER,
    KILL,
    LOSE,
    ROLLBACK,
    SENT,
    SLEEP,
    TO_PROVIDER,
    Fault,
)


@dataclass
class Effect:
    """One effect. `is_done`: it has happened, whatever became of its answer."""

    label: str
    kind: str  # "statement", "commit" (it ends a transaction, perhaps its own), "other"
    in_transaction: bool
    is_done: bool = False


@dataclass(frozen=True)
class Trace:
    """The effects of one run in order. `answer` of a request; `raised` the class of an exception."""

    effects: Sequence[Effect]
    status: int  # of the process; negative for a signal
    answer: Any = None
    raised: str | None = None
    detail: str = ""

    @classmethod
    def read(cls, reply: dict[str, Any]) -> "Trace":
        effects: dict[int, Effect] = {}
        answer, raised, detail = None, None, ""
        for what, *rest in reply["told"]:
            if what == "begin":
                number, label, kind, in_transaction = rest
                effects[number] = Effect(label, kind, in_transaction)
            elif what == "done":
                effects[rest[0]].is_done = True
            elif what == "answer":
                [answer] = rest
            elif what == "raised":
                raised, detail = rest
        return cls(list(effects.values()), reply["status"], answer, raised, detail)

    @property
    def was_killed(self) -> bool:
        return self.status == -signal.SIGKILL

    def points(self, kinds: Sequence[str]) -> list[Fault]:
        """Every fault of these kinds that can strike at these effects."""
        faults = []
        for number, effect in enumerate(self.effects, start=1):
            can = {
                KILL: True,
                DROP: effect.kind != "other",
                LOSE: effect.kind == "commit",
                SLEEP: not effect.in_transaction and effect.label not in (COMMIT, ROLLBACK, END),
            }
            faults += [Fault(kind, number) for kind in kinds if can[kind]]
        return faults

    def committed(self, label: str, *, since: int = 0) -> bool:
        """Whether a statement was done, from an effect on, and its transaction committed."""
        pending = False
        for effect in self.effects[since:]:
            if effect.label.startswith(label) and effect.is_done:
                if not effect.in_transaction:
                    return True
                pending = True
            elif effect.label == COMMIT and effect.is_done:
                if pending:
                    return True
            elif effect.label in (COMMIT, ROLLBACK):
                pending = False
        return False

    @property
    def answered(self) -> int | None:
        """The place behind the first bytes of the answer to a paid request, if any came."""
        sent = False
        for place, effect in enumerate(self.effects, start=1):
            sent = sent or (effect.label == SENT and effect.is_done)
            if sent and effect.label == FROM_PROVIDER and effect.is_done:
                return place
        return None

    def broken_order(self) -> list[str]:
        """What must never be seen in any run: something leaves the building inside a transaction."""
        return [
            f"{effect.label} with a transaction open"
            for effect in self.effects
            if effect.in_transaction and effect.label.startswith(("message", TO_PROVIDER))
        ]

    def sent_asleep(self, fault: Fault) -> bool:
        """Whether a lease was taken, the process slept, and then the paid request went out."""
        before, after = self.effects[: fault.at - 1], self.effects[fault.at - 1 :]
        return any(effect.label == "UPDATE videos_videotask" for effect in before) and any(
            effect.label == SENT and effect.is_done for effect in after
        )

    def shown(self) -> str:
        """The run as one reads it: a line an effect."""
        marks = [f"{n:4} {'·' if e.is_done else '✗'} {e.label}" for n, e in enumerate(self.effects, start=1)]
        return "\n".join([*marks, f"     status {self.status} {self.raised or ''} {self.detail}"])
