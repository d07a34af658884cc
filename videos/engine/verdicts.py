"""What an attempt's answer means for the attempt, and what the attempts together mean for the task. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.http import AnswerLost, NotSent
from videos.providers.base import (
    Accepted,
    AccountTrouble,
    Rejected,
    SubmitAnswer,
    Throttled,
    Unclear,
    WrongAddress,
)
from videos.states import Outcome

THROTTLED = "throttled"
ACCOUNT = "account"
WRONG_ADDRESS = "wrong_address"
DEADLINE = "deadline_passed"

Answer = SubmitAnswer | NotSent | AnswerLost


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one answer says. `reason` is what the attempt keeps: for a typed refusal its code and field."""

    outcome: Outcome
    reason: str
    is_alarm: bool = False
    pause_seconds: float | None = None  # what the provider asked to wait


def judge_answer(answer: Answer) -> Verdict:
    """An answer's verdict on its own attempt, and on nothing else."""
    match answer:
        case Accepted():
            return Verdict(outcome=Outcome.ACCEPTED, reason="")
        case Rejected(code=code, field=field):
            return Verdict(outcome=Outcome.REJECTED, reason=f"{code}:{field or ''}"[:64])
        case Throttled(retry_after_seconds=seconds):
            return Verdict(outcome=Outcome.REJECTED, reason=THROTTLED, pause_seconds=seconds)
        case AccountTrouble(reason=reason):
            return Verdict(outcome=Outcome.REJECTED, reason=f"{ACCOUNT}:{reason}"[:64], is_alarm=True)
        case WrongAddress(reason=reason):
            return Verdict(outcome=Outcome.UNCLEAR, reason=f"{WRONG_ADDRESS}:{reason}"[:64], is_alarm=True)
        case Unclear(reason=reason):
            return Verdict(outcome=Outcome.UNCLEAR, reason=reason[:64])
        case NotSent():
            return Verdict(outcome=Outcome.NOT_SENT, reason=answer.reason[:64])
        case AnswerLost():
            return Verdict(outcome=Outcome.UNCLEAR, reason=answer.reason[:64])


class Fate(StrEnum):
    """What all attempts of a task say together."""

    RUNNING = "running"  # one is accepted
    OPEN = "open"  # one may have been executed: in flight or unclear
    REFUSED = "refused"  # none was executed, and the last was refused for good
    UNSENT = "unsent"  # none was executed; it may be sent (again)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """An attempt as far as the task's fate depends on it."""

    outcome: Outcome
    reason: str


def fate_of(attempts: Sequence[Tried]) -> Fate:
    """The fate of a task. `attempts` in the order of their numbers.

    A refusal proves only its own attempt: while an earlier one is unclear, the fate stays open.
    """
    outcomes = {attempt.outcome for attempt in attempts}
    if Outcome.ACCEPTED in outcomes:
        return Fate.RUNNING
    if outcomes & {Outcome.INFLIGHT, Outcome.UNCLEAR}:
        return Fate.OPEN
    if attempts and attempts[-1].outcome == Outcome.REJECTED and refusal_code(attempts[-1].reason):
        return Fate.REFUSED
    return Fate.UNSENT


def refusal_code(reason: str) -> str | None:
    """The code of a typed refusal of the input; None for refusals that may pass (throttled, our account)."""
    code = reason.partition(":")[0]
    return None if code in (THROTTLED, ACCOUNT) else code


def refusal_params(reason: str) -> dict[str, str]:
    """The figures of the refusal's sentence."""
    code, _, field = reason.partition(":")
    return {"field": field or "request"} if code == "input_invalid" else {}
