"""How a task is told: one place for API, pages and admin, so that they cannot disagree."""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.urls import reverse

from core.money import to_amount
from tombstones.models import BurialReason
from videos.catalogue import get_model
from videos.messages import (
    ROWS,
    Message,
    TaskFacts,
    absent_chip,
    describe_absent,
    describe_refusal,
    describe_task,
    money_chip,
    render,
    video_chip,
)
from videos.models import VideoTask
from videos.operations import can_ask_to_stop
from videos.providers.registry import get_provider
from videos.queries import TaskView
from videos.states import FINAL, UNFINISHED, State
from videos.time_limits import give_up_seconds, max_age_seconds

UNREACHABLE_AFTER_TRIES = 3  # failed reads in a row before we say so
SUBMISSION_STATES = {
    State.SUBMITTING: "submitting",
    State.UNKNOWN: "unknown",
    State.PROCESSING: "accepted",
    State.COMPLETED: "accepted",
}


def facts_of(view: TaskView, now: datetime) -> TaskFacts:
    """Everything a message or a chip may say about a live task. `view.task` must be there."""
    task = view.task
    if task is None:
        raise ValueError("a buried claim has no task to describe")
    spec = get_model(task.model)
    elapsed = int(((task.finished_at or now) - task.created_at).total_seconds())
    running_for = int((now - (task.accepted_at or now)).total_seconds())
    usual = spec.usual_seconds if spec else None
    is_running = task.state == State.PROCESSING
    unclear_for = (now - (task.first_unclear_at or now)).total_seconds()
    is_given = task.state == State.FAILED and task.result_file_id is not None
    return TaskFacts(
        state=task.state,
        money=view.money,
        charged_micros=view.charged_micros,
        returned_micros=view.returned_micros,
        goodwill_micros=view.goodwill_micros,
        currency=settings.BILLING_CURRENCY,
        model=task.model,
        error_code=task.error_code,
        error_params=task.error_params,
        wait_reason=_wait_reason(view),
        wait_until=task.next_check_at if task.wait_reason == "provider_busy" else None,
        phase=task.phase if is_running else None,
        queue_position=task.queue_position,
        progress=task.progress,
        is_late=is_running and usual is not None and running_for > usual[1],
        is_stuck=is_running and running_for > max_age_seconds(task.model),
        needs_review=task.state == State.UNKNOWN and unclear_for > settings.UNKNOWN_REVIEW_AFTER,
        is_unreachable=is_running and task.phase != "storing" and task.tries >= UNREACHABLE_AFTER_TRIES,
        is_cancelling=task.state in UNFINISHED and task.cancel_requested_at is not None,
        delete_requested=task.delete_requested_at is not None,
        finished_despite_cancel=task.state == State.COMPLETED and task.cancel_requested_at is not None,
        late_result_given=is_given,
        elapsed_seconds=max(0, elapsed),
        usual_low_seconds=usual[0] if usual else None,
        usual_high_seconds=usual[1] if usual else None,
        review_deadline=_review_deadline(task),
    )


def _wait_reason(view: TaskView) -> str | None:
    task = view.task
    if task is None or task.state != State.SUBMITTING:
        return None
    return "provider_paused" if view.alarm is not None else task.wait_reason


def _review_deadline(task: VideoTask) -> datetime | None:
    if task.first_unclear_at is None:
        return None
    return task.first_unclear_at + timedelta(seconds=give_up_seconds(get_provider(task.provider)))


def message_of(view: TaskView, now: datetime) -> Message:
    """The one message of an id: of its task, or of its tombstone."""
    if view.task is not None:
        return describe_task(facts_of(view, now))
    if view.claim.reason == BurialReason.ABANDONED:
        return describe_absent("abandoned")
    return describe_absent(
        "deleted",
        money=view.money,
        charged_micros=view.charged_micros,
        returned_micros=view.returned_micros,
        currency=settings.BILLING_CURRENCY,
        deleted_at=view.claim.buried_at,
    )


def represent_charge(view: TaskView) -> dict[str, str]:
    return {
        "state": view.money,
        "amount": to_amount(view.charged_micros),
        "refunded": to_amount(view.returned_micros),
        "currency": settings.BILLING_CURRENCY,
    }


def _nothing_charged() -> dict[str, str]:
    nothing, currency = to_amount(0), str(settings.BILLING_CURRENCY)
    return {"state": "not_charged", "amount": nothing, "refunded": nothing, "currency": currency}


def represent_message(message: Message) -> dict[str, str]:
    return {"code": message.code, "text": render(message)}


def represent_absent(client_id: str, view: TaskView | None) -> dict[str, Any]:
    """An entry of a bulk read for an id without a live task: unseen, deleted or abandoned."""
    if view is None:
        # After a restore the memory may have holes, and "nothing was charged" might be untrue.
        unseen = describe_refusal("quarantine") if settings.QUARANTINE else describe_absent("not_received")
        charge = None if settings.QUARANTINE else _nothing_charged()
        return {
            "id": client_id,
            "code": unseen.code,
            "charge": charge,
            "message": represent_message(unseen),
        }
    message = describe_absent("abandoned") if _is_abandoned(view) else message_of(view, view.claim.created_at)
    return {
        "id": client_id,
        "code": absent_code(view),
        "charge": represent_charge(view),
        "message": represent_message(message),
        "chips": {"video": vars(absent_chip(absent_code(view)))},
    }


def _is_abandoned(view: TaskView) -> bool:
    return view.claim.reason == BurialReason.ABANDONED


def absent_code(view: TaskView) -> str:
    """`deleted` or `abandoned`, of a buried claim."""
    return "abandoned" if _is_abandoned(view) else "deleted"


def represent_task(view: TaskView, now: datetime) -> dict[str, Any]:
    """A live task as the API tells it."""
    task = view.task
    if task is None:
        raise ValueError("a buried claim has no task to represent")
    facts = facts_of(view, now)
    message = describe_task(facts)
    is_storing = facts.phase == "storing"
    return {
        "id": task.client_id,
        "state": task.state,
        "submission_state": SUBMISSION_STATES.get(State(task.state), _failed_submission(task)),
        "phase": facts.phase,
        "progress": task.progress,
        "queue_position": task.queue_position,
        "eta": _eta(task),
        "model": task.model,
        "prompt": view.prompt,
        "seconds": task.seconds,
        "resolution": task.resolution,
        "aspect_ratio": task.aspect_ratio,
        "audio": task.audio,
        "seed": task.seed,
        "charge": represent_charge(view),
        "message": represent_message(message),
        "error": _error(task, message),
        "cancel": _cancel(view, is_storing),
        "result": _result(task),
        "late": facts.is_late,
        "chips": {"video": vars(video_chip(facts)), "money": vars(money_chip(facts))},
        "created_at": _instant(task.created_at),
        "accepted_at": _instant(task.accepted_at),
        "finished_at": _instant(task.finished_at),
        "poll_after_seconds": poll_after_seconds(task, now),
    }


def _failed_submission(task: VideoTask) -> str:
    return "accepted" if task.accepted_at is not None else "rejected"


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def _eta(task: VideoTask) -> dict[str, int] | None:
    """Seconds from acceptance that this model usually takes; nothing is made up for other states.

    The range does not shrink with the age, so that an unchanged task keeps its ETag.
    """
    spec = get_model(task.model)
    if task.state != State.PROCESSING or spec is None:
        return None
    low, high = spec.usual_seconds
    return {"low": low, "high": high}


def _error(task: VideoTask, message: Message) -> dict[str, Any] | None:
    if task.state != State.FAILED:
        return None
    retryable = ROWS[message.row].retry == "again"
    return {"code": task.error_code, "detail": task.error_detail, "retryable": retryable}


def _cancel(view: TaskView, is_storing: bool) -> dict[str, Any]:
    """Whether cancelling is possible, and what comes back if it succeeds: a cancelled task is refunded in
    full.

    A task that was not sent yet may be cancelled at once; the operation judges that under its lock.
    """
    task = view.task
    possible = (
        task is not None
        and task.state in UNFINISHED
        and not is_storing
        and task.cancel_requested_at is None
        and (task.state == State.SUBMITTING or can_ask_to_stop(task))
    )
    return {"possible": possible, "refund": to_amount(view.charged_micros) if possible else None}


def _result(task: VideoTask) -> dict[str, str] | None:
    if task.result_file_id is None:
        return None
    return {
        "file": str(task.result_file_id),
        "url": reverse("file-content", kwargs={"file_id": task.result_file_id}),
    }


def poll_after_seconds(task: VideoTask, now: datetime) -> int | None:
    """When a client should look again: never for a final task, later for an old one. Seconds."""
    if task.state in FINAL:
        return None
    age = (now - task.created_at).total_seconds()
    return 2 if age < 60 else 5 if age < 600 else 15


def etag_of(body: bytes, language: str) -> str:
    """A validator of an answer that changes with anything told, derived facts and language included."""
    digest = hashlib.sha256(language.encode() + b"\n" + body).hexdigest()
    return f'"{digest[:32]}"'
