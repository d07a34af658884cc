"""What the course of an operation allows afterwards: pure functions of what was seen to happen.

Nothing here lists points by number. Whether a step took effect is read from the trace (was its transaction
committed?), and whether the provider ran a job from the provider's own journal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.crash.trace import Trace

DONE_BY = {  # operation → the statement whose commit is the whole change
    "submit": "INSERT tombstones_claim",
    "abandon": "INSERT tombstones_claim",
    "cancel": "INSERT billing_resolution",
    "delete": "UPDATE tombstones_claim",
    "fail": "INSERT billing_resolution",
    "refuse": "INSERT billing_resolution",
    "give up": "INSERT billing_resolution",
    "store": "INSERT billing_resolution",
    "complete": "INSERT billing_resolution",
}
GOOD_ANSWERS = {"submit": (201,), "abandon": (200,), "cancel": (200,), "delete": (204,)}
SAID_AGAIN = {  # operation → the answers to the same request afterwards: not done before, done before
    "submit": (201, 200),
    "abandon": (200, 200),
    "cancel": (200, 200),
    "delete": (204, 410),
}
# What a worker may die of when its database goes away: the schedule runs the same again in a second.
WORKER_ERRORS = (None, "OperationalError", "InterfaceError")


@dataclass(frozen=True)
class End:
    """How a task ended, and how many jobs the provider ran for it. `gone`: buried."""

    state: str
    error_code: str | None
    jobs: int


COMPLETED = End("completed", None, 1)


def was_done(operation: str, runs: Sequence[Trace]) -> bool | None:
    """Whether the operation's change took effect in one of its runs; None where it is not a single change."""
    statement = DONE_BY.get(operation)
    return any(run.committed(statement) for run in runs) if statement else None


def lies(operation: str, runs: Sequence[Trace]) -> list[str]:
    """What the last run of an operation said although it is not so, or must not say at all."""
    *earlier, last = runs
    if last.was_killed:
        return []
    if operation not in GOOD_ANSWERS:
        return [] if last.raised in WORKER_ERRORS else [f"the worker raised {last.raised}"]
    if last.raised is not None:
        return [f"the request raised {last.raised}"]
    status, code = last.answer["status"], last.answer["code"]
    done_before, done = bool(was_done(operation, earlier)), was_done(operation, runs)
    good = (SAID_AGAIN[operation][1],) if done_before else GOOD_ANSWERS[operation]
    if status in good:
        return [] if done else [f"{status} and nothing was saved"]
    if (status, code) == (503, "unavailable"):
        return ["“nothing was saved” and it was"] if done and not done_before else []
    return [] if (status, code) == (503, "outcome_unknown") else [f"answered {status} {code}"]


def allowed_ends(operation: str, runs: Sequence[Trace], jobs: int) -> set[End]:
    """The ends that the contract allows after these runs; `jobs` by the provider's journal."""
    match operation:
        case "abandon":
            return {End("gone", "abandoned", 0)}
        case "delete":
            return {End("gone", "deleted", 1)}
        case "cancel":
            return {End("failed", "cancelled", 0)}
        case "fail":
            return {End("failed", "provider_failed", 1)}
        case "give up":
            return {End("failed", "time_limit", 1)}
        case "dispatch fal" | "dispatch blind" | "dispatch lost" | "refuse":
            return _ends_of_sending(operation, runs, jobs)
        case _:
            return {COMPLETED}


def _ends_of_sending(operation: str, runs: Sequence[Trace], jobs: int) -> set[End]:
    told = End("failed", "input_invalid", 0) if operation == "refuse" else COMPLETED
    if not any(was_begun(run) for run in runs):
        return {told}  # sent by the next worker
    if any(was_recorded(run) for run in runs):
        return {told}
    # Begun and its answer not on record: unknown, and never sent blindly.
    if jobs == 1 and operation != "dispatch blind":
        return {COMPLETED}  # found in the provider's list
    return {End("failed", "time_limit", jobs)} if jobs <= 1 else set()


def was_begun(run: Trace) -> bool:
    """Whether this run put an attempt on record."""
    return run.committed("INSERT videos_attempt")


def was_recorded(run: Trace) -> bool:
    """Whether this run sent, and has put the answer on the attempt's record."""
    answered = run.answered
    return answered is not None and run.committed("UPDATE videos_attempt", since=answered)


def lost_an_answer(run: Trace) -> bool:
    """Whether a process that lived on had the provider's answer to its order and did not record it."""
    return not run.was_killed and run.answered is not None and not was_recorded(run)
