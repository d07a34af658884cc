"""A job and its course: where it is at a moment, and how it ends. Pure functions of the row and the time."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from simulator import prices
from simulator.directives import Directives, Setting, exact, integer, number, text

QUEUE_SHARE = 1 / 3  # of a job's time, unless told
CANCELLED_CODE = 499
QUEUE_PLACES = 3  # how many places a waiting job moves up before it starts


class Phase(StrEnum):
    """Where a job is; the values are fal's words."""

    IN_QUEUE = "IN_QUEUE"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"


class Outcome(StrEnum):
    """How a job ended; fal's look-up filters by the first three."""

    SUCCESS = "success"
    ERROR = "error"
    USER_ERROR = "user_error"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Job:
    """One job the simulator took. Times are Unix seconds; None for an end means "never by itself"."""

    request_id: str
    endpoint: str
    key_digest: str
    webhook_url: str | None
    marker: str
    input: Mapping[str, Any]
    directives: Directives
    received_at: float
    queue_seconds: float | None
    run_seconds: float | None
    ended_at: float | None = None
    outcome: Outcome | None = None

    @property
    def app(self) -> str:
        return app_of(self.endpoint)

    @property
    def starts_at(self) -> float | None:
        return None if self.queue_seconds is None else self.received_at + self.queue_seconds

    @property
    def ends_at(self) -> float | None:
        """When it ends by itself, if nobody cancels it."""
        if self.starts_at is None or self.run_seconds is None:
            return None
        return self.starts_at + self.run_seconds


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a job ends: what its result answers, and what it costs."""

    outcome: Outcome
    status_code: int
    error: str | None
    error_type: str | None
    billed: bool
    units: Decimal
    unit_price: Decimal
    cost: Decimal


def app_of(endpoint: str) -> str:
    """The part of an endpoint that addresses of its requests use: owner and app, after any name space."""
    parts = endpoint.split("/")
    return "/".join(parts[: 3 if parts[0] in ("workflows", "comfy") else 2])


def plan_seconds(
    directives: Mapping[str, Setting], *, job_seconds: float
) -> tuple[float | None, float | None]:
    """Seconds in the queue and at work; None where it has no end."""
    total = number(directives.get("seconds"), job_seconds)
    if directives.get("webhook_early") and "seconds" not in directives:
        total = 0.0  # the call comes before the submit answer, so the job is over by then
    queue = number(directives.get("queue_seconds"), total * QUEUE_SHARE)
    queue_seconds = None if directives.get("queue_forever") else max(0.0, queue)
    run_seconds = None if directives.get("run_forever") else max(0.0, total - queue)
    return queue_seconds, run_seconds


def phase_at(job: Job, now: float) -> Phase:
    """Where the job is at `now`."""
    if job.ended_at is not None or (job.ends_at is not None and now >= job.ends_at):
        return Phase.COMPLETED
    if job.starts_at is None or now < job.starts_at:
        return Phase.IN_QUEUE
    return Phase.IN_PROGRESS


def queue_position(job: Job, now: float) -> int:
    """The place in the queue, counted from 0; it falls as the start comes nearer."""
    if job.queue_seconds is None or job.starts_at is None:
        return QUEUE_PLACES
    if job.queue_seconds <= 0:
        return 0
    left = max(0.0, job.starts_at - now) / job.queue_seconds
    return min(QUEUE_PLACES - 1, int(left * QUEUE_PLACES))


def decide(job: Job, *, cancelled: bool = False) -> Verdict:
    """How the job ends. Only outputs are billed, unless a directive says otherwise."""
    directives = job.directives
    if cancelled:
        return _verdict(job, Outcome.CANCELLED, CANCELLED_CODE, "Request was cancelled", "client_cancelled")
    if directives.get("refused_output"):
        message = text(directives["refused_output"]) or "The output was withheld by the content checker."
        return _verdict(job, Outcome.USER_ERROR, 422, message, "content_policy_violation")
    failure = directives.get("fail")
    if failure:
        code = integer(directives.get("fail_code")) or 500
        kind = text(directives.get("error_type")) or ("runner_server_error" if code >= 500 else "bad_request")
        outcome = Outcome.ERROR if code >= 500 else Outcome.USER_ERROR
        return _verdict(job, outcome, code, text(failure) or "The model failed.", kind)
    return _verdict(job, Outcome.SUCCESS, 200, None, None)


def _verdict(job: Job, outcome: Outcome, code: int, error: str | None, error_type: str | None) -> Verdict:
    told = job.directives.get("billed")
    billed = outcome is Outcome.SUCCESS if told is None else bool(told)
    units = prices.seconds_ordered(job.input) if billed else Decimal(0)
    price = prices.unit_price(job.endpoint, job.input)
    if billed and "units" in job.directives:
        units = exact(job.directives["units"], units)
    return Verdict(
        outcome=outcome,
        status_code=code,
        error=error,
        error_type=error_type,
        billed=billed,
        units=units,
        unit_price=price,
        cost=units * price,
    )
