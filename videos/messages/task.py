"""Which sentence describes a task: one pure decision over the facts of the task and of its money."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog

from core.messages import FIELD_NAMES, SECONDS_PER_HOUR, Clock, Duration, FieldName, Moment, Money
from videos.messages.row import Message
from videos.messages.rows import INCONSISTENT, ROW_OF_FAILURE, ROWS

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """All that a message, a chip or a view may say about a task.

    `returned_micros` is all that went back to the owner's balance for this charge; `goodwill_micros` is the
    part of it that support gave. `error_params` holds what the sentence of a failure needs:
    `{"price_micros", "balance_micros"}` for `insufficient_balance`, `{"field"}` for `input_invalid`,
    `{"hours"}` or `{"seconds"}` for `time_limit` and `not_sent_in_time`. Times are aware; durations are whole
    seconds.
    """

    state: str  # submitting | unknown | processing | completed | failed
    money: str  # not_charged | charged | settled | partially_refunded | refunded
    charged_micros: int
    returned_micros: int
    goodwill_micros: int
    currency: str
    model: str
    error_code: str | None = None
    error_params: Mapping[str, Any] = field(default_factory=dict)
    wait_reason: str | None = None  # provider_busy | provider_paused | sending_again, while submitting
    wait_until: datetime | None = None
    phase: str | None = None  # queued | running | storing, while processing
    queue_position: int | None = None
    progress: int | None = None
    is_late: bool = False
    is_stuck: bool = False
    needs_review: bool = False
    is_unreachable: bool = False
    is_cancelling: bool = False
    delete_requested: bool = False
    finished_despite_cancel: bool = False
    late_result_given: bool = False
    elapsed_seconds: int = 0
    usual_low_seconds: int | None = None
    usual_high_seconds: int | None = None
    review_deadline: datetime | None = None


def describe_task(facts: TaskFacts) -> Message:
    """The one message of a task.

    Facts that cannot be true together (a completed task that was never charged, more returned than charged, a
    refund without a reason) are logged at error level, which rings the alarm, and described as
    `inconsistent`, which says nothing about money but where to look it up.
    """
    row_id = _ROW_BY_STATE[facts.state](facts) if facts.state in _ROW_BY_STATE else None
    if (
        row_id is None
        or not _money_adds_up(facts)
        or (facts.state, facts.money) not in ROWS[row_id].allowed_pairs
    ):
        return _inconsistent(facts, row_id, missing=None)
    row = ROWS[row_id]
    params = {name: _VALUES[name](facts) for name in sorted(row.variables)}
    missing = [name for name, value in params.items() if value is None]
    if missing:
        return _inconsistent(facts, row_id, missing=missing)
    return Message(code=row.code, row=row.id, params=params)


def _inconsistent(facts: TaskFacts, row_id: str | None, *, missing: list[str] | None) -> Message:
    logger.error(
        "task_facts_inconsistent",
        state=facts.state,
        money=facts.money,
        error_code=facts.error_code,
        charged_micros=facts.charged_micros,
        returned_micros=facts.returned_micros,
        goodwill_micros=facts.goodwill_micros,
        row=row_id,
        missing=missing,
    )
    return Message(code=ROWS[INCONSISTENT].code, row=INCONSISTENT, params={})


def _submitting_row(facts: TaskFacts) -> str | None:
    if facts.delete_requested:
        return "A14"
    if facts.wait_reason == "provider_busy":
        return "A2" if facts.wait_until is not None else "A2n"
    return {None: "A1", "provider_paused": "A3", "sending_again": "A4"}.get(facts.wait_reason)


def _unknown_row(facts: TaskFacts) -> str | None:
    if facts.delete_requested:
        return "A14"
    if facts.needs_review:
        return "A6" if facts.review_deadline is not None else "A6n"
    return "A5"


def _processing_row(facts: TaskFacts) -> str | None:
    """First match. A video that is being saved is never called cancelling, stuck or unreachable: it is made.

    After that, what the owner asked for comes before what we wait for, and what a person works on before what
    passes by itself.
    """
    if facts.delete_requested:
        return "A14"
    if facts.phase == "storing":
        return "A9"
    if facts.is_cancelling:
        return "A13"
    if facts.is_stuck:
        return "A11"
    if facts.is_unreachable:
        return "A12"
    if facts.is_late:
        return "A10" if facts.usual_high_seconds is not None else "A10n"
    if facts.phase == "queued":
        return "A7" if facts.queue_position is not None else "A7n"
    low, high = facts.usual_low_seconds, facts.usual_high_seconds
    return "A8" if low is not None and high is not None and low < high else "A8n"


def _completed_row(facts: TaskFacts) -> str | None:
    if facts.goodwill_micros > 0:
        return "B3"
    if facts.money == "partially_refunded":
        return "B2"
    return "B4" if facts.finished_despite_cancel else "B1"


def _failed_row(facts: TaskFacts) -> str | None:
    row_id = ROW_OF_FAILURE.get(facts.error_code or "")
    if row_id == "E1":
        if facts.money == "settled":
            return "E1"
        # Nothing but goodwill can follow a settled failure: any other return would have been a refund.
        return "E2" if facts.goodwill_micros == facts.returned_micros else None
    if facts.goodwill_micros > 0:
        return None  # a full refund leaves nothing that support could return
    return "D12" if facts.late_result_given and facts.money == "refunded" else row_id


_ROW_BY_STATE: Mapping[str, Callable[[TaskFacts], str | None]] = {
    "submitting": _submitting_row,
    "unknown": _unknown_row,
    "processing": _processing_row,
    "completed": _completed_row,
    "failed": _failed_row,
}


def _money_adds_up(facts: TaskFacts) -> bool:
    charged, returned, goodwill = facts.charged_micros, facts.returned_micros, facts.goodwill_micros
    if not 0 <= goodwill <= returned <= charged:
        return False
    if facts.money == "not_charged":
        return charged == 0
    if charged == 0:
        return False
    if facts.money in ("charged", "settled"):
        return returned == 0
    if facts.money == "partially_refunded":
        return 0 < returned < charged
    return facts.money == "refunded" and returned == charged


def _amount(facts: TaskFacts) -> Money:
    """What was held or charged; with goodwill, what was charged before it."""
    returned_by_settlement = facts.returned_micros - facts.goodwill_micros if facts.goodwill_micros else 0
    return Money(facts.charged_micros - returned_by_settlement, facts.currency)


def _refunded(facts: TaskFacts) -> Money:
    return Money(facts.goodwill_micros or facts.returned_micros, facts.currency)


def _net(facts: TaskFacts) -> Money:
    return Money(facts.charged_micros - facts.returned_micros, facts.currency)


def _stored_money(facts: TaskFacts, name: str) -> Money | None:
    micros = facts.error_params.get(name)
    return Money(micros, facts.currency) if isinstance(micros, int) else None


def _waited(facts: TaskFacts) -> Duration | None:
    if "seconds" in facts.error_params:
        return Duration(int(facts.error_params["seconds"]))
    if "hours" in facts.error_params:
        return Duration(int(facts.error_params["hours"]) * SECONDS_PER_HOUR)
    return None


def _field(facts: TaskFacts) -> FieldName:
    """The field in our words; a name of the provider's own is "the input", as its text is never shown."""
    name = facts.error_params.get("field")
    return FieldName(name if name in FIELD_NAMES else "input")


def _usual_high(facts: TaskFacts) -> Duration | None:
    return (
        Duration(facts.usual_high_seconds, rounds_up=True) if facts.usual_high_seconds is not None else None
    )


# A value of None means that the fact is missing although the row needs it.
_VALUES: Mapping[str, Callable[[TaskFacts], object | None]] = {
    "amount": _amount,
    "net": _net,
    "refunded": _refunded,
    "model": lambda facts: facts.model or None,
    "when": lambda facts: Clock(facts.wait_until) if facts.wait_until is not None else None,
    "deadline": lambda facts: Moment(facts.review_deadline) if facts.review_deadline is not None else None,
    "position": lambda facts: facts.queue_position,
    "low": lambda facts: Duration(facts.usual_low_seconds) if facts.usual_low_seconds is not None else None,
    "high": _usual_high,
    "elapsed": lambda facts: Duration(facts.elapsed_seconds),
    "price": lambda facts: _stored_money(facts, "price_micros"),
    "balance": lambda facts: _stored_money(facts, "balance_micros"),
    "field": _field,
    "duration": _waited,
}
