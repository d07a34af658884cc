"""The states of a task and every change between them. Pure: the one table that code, trigger and docs
read.
"""

from enum import StrEnum


class State(StrEnum):
    SUBMITTING = "submitting"
    UNKNOWN = "unknown"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class Phase(StrEnum):
    """What is known of a `processing` task; empty while nothing was read yet."""

    QUEUED = "queued"
    RUNNING = "running"
    STORING = "storing"


class Outcome(StrEnum):
    """What became of one attempt."""

    INFLIGHT = "inflight"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    NOT_SENT = "not_sent"
    UNCLEAR = "unclear"


class EvidenceKind(StrEnum):
    """Why a task may leave `unknown`, or be bound other than by its submit answer."""

    LATE_ANSWER = "late_answer"
    WEBHOOK = "webhook"
    LOOKUP = "lookup"
    BILL = "bill"
    PERSON = "person"
    TIME_LIMIT = "time_limit"
    SECOND_JOB = "second_job"
    LATE_RESULT = "late_result"


FINAL = frozenset({State.COMPLETED, State.FAILED})
UNFINISHED = frozenset({State.SUBMITTING, State.UNKNOWN, State.PROCESSING})

# from → to; a refusal for want of money is born `failed`, everything else is born `submitting`
TRANSITIONS: frozenset[tuple[State, State]] = frozenset(
    {
        (State.SUBMITTING, State.PROCESSING),
        (State.SUBMITTING, State.UNKNOWN),
        (State.SUBMITTING, State.FAILED),
        (State.UNKNOWN, State.PROCESSING),
        (State.UNKNOWN, State.SUBMITTING),
        (State.UNKNOWN, State.FAILED),
        (State.PROCESSING, State.COMPLETED),
        (State.PROCESSING, State.FAILED),
    }
)
BIRTHS = frozenset({State.SUBMITTING, State.FAILED})

# A late answer still changes `unclear`; nothing else is ever rewritten.
OUTCOME_CHANGES: frozenset[tuple[Outcome, Outcome]] = frozenset(
    {(Outcome.INFLIGHT, to) for to in Outcome if to is not Outcome.INFLIGHT}
    | {(Outcome.UNCLEAR, to) for to in (Outcome.ACCEPTED, Outcome.REJECTED, Outcome.NOT_SENT)}
)


def sources_of(after: State) -> list[str]:
    """The states from which `after` can be reached, for a compare-and-swap."""
    return sorted(before.value for before, to in TRANSITIONS if to is after)
