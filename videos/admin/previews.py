"""What an action of staff would change, told by the same functions that tell it afterwards. Pure."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from billing.kinds import Outcome
from billing.models import Resolution
from billing.queries import Balance
from tombstones.models import BurialReason, ClaimState
from videos.messages import render
from videos.models import VideoTask
from videos.presentation import message_of
from videos.queries import TaskView
from videos.states import State

LANGUAGES = (("en", "English"), ("zh-hans", "简体中文"))


@dataclass(frozen=True, kw_only=True)
class Preview:
    """Balances in micro-units before and after, and the sentence the owner will read, by language."""

    before: Balance
    after: Balance
    sentences: list[tuple[str, str]]


def sentences_of(view: TaskView, now: datetime) -> list[tuple[str, str]]:
    """(language, sentence) as the owner reads it, in both languages."""
    message = message_of(view, now)
    return [(title, render(message, language)) for language, title in LANGUAGES]


def preview(*, before: TaskView, after: TaskView, balance: Balance, now: datetime) -> Preview:
    """Compare two views of one task; what is returned more moves from held to available."""
    back = after.returned_micros - before.returned_micros
    was_held = before.charge is not None and before.resolution is None
    held_less = before.charged_micros if was_held and after.resolution is not None else 0
    return Preview(
        before=balance,
        after=Balance(
            available_micros=balance.available_micros + back, held_micros=balance.held_micros - held_less
        ),
        sentences=sentences_of(after, now),
    )


def as_failed(view: TaskView, *, code: str, now: datetime) -> TaskView:
    """The task closed with all its money back; buried at once where its deletion was asked for."""
    resolution = Resolution(
        outcome=Outcome.REFUNDED.value, settled_micros=0, returned_micros=view.charged_micros
    )
    closed = _changed(view, state=State.FAILED, error_code=code, error_params={}, finished_at=now)
    if view.task is not None and view.task.delete_requested_at is not None:
        claim = copy.copy(view.claim)
        claim.state, claim.reason, claim.buried_at = ClaimState.BURIED, BurialReason.CANVAS_DELETED, now
        return replace(closed, task=None, claim=claim, resolution=resolution)
    return replace(closed, resolution=resolution)


def as_sent_again(view: TaskView, *, now: datetime) -> TaskView:
    return _changed(view, state=State.SUBMITTING, wait_reason="sending_again", next_check_at=now)


def as_running(view: TaskView, *, now: datetime) -> TaskView:
    return _changed(view, state=State.PROCESSING, accepted_at=now, phase=None, tries=0, wait_reason=None)


def with_goodwill(view: TaskView, *, amount_micros: int) -> TaskView:
    return replace(view, goodwill_micros=view.goodwill_micros + amount_micros)


def _changed(view: TaskView, **columns: Any) -> TaskView:
    task: VideoTask | None = copy.copy(view.task)
    for name, value in columns.items():
        setattr(task, name, value)
    return replace(view, task=task)


AFTER: dict[str, Callable[[TaskView, datetime], TaskView]] = {
    "adopt": lambda view, now: as_running(view, now=now),
    "never_received_resend": lambda view, now: as_sent_again(view, now=now),
    "never_received_refund": lambda view, now: as_failed(view, code="never_received", now=now),
    "fail_and_refund": lambda view, now: as_failed(view, code="closed_by_support", now=now),
}
