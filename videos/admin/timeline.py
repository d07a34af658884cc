"""Everything that happened to a task, from all its records, in one order."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings

from billing.models import Transfer
from core.admin import NOT_REPORTED
from core.money import format_money
from videos.models import Attempt, Evidence, OrphanJob, TaskEvent, WebhookCall
from videos.queries import TaskView
from videos.states import Outcome

MOST_ROWS = 200  # of each kind; no task has that many, and a page must not grow without end


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line of the timeline. `kind`: state, attempt, evidence, webhook or money. `raw` is folded away."""

    at: datetime
    kind: str
    text: str
    detail: str = ""
    raw: str = ""


def timeline_of(view: TaskView) -> list[Entry]:
    """All entries of a task, oldest first; attempts, evidence and money are there after its deletion too."""
    key = view.claim.pk
    entries = [*_events(key), *_attempts(key), *_evidence(key), *_calls(key), *_transfers(key)]
    if view.claim.buried_at is not None:
        entries.append(
            Entry(at=view.claim.buried_at, kind="state", text="buried", detail=view.claim.reason or "")
        )
    return sorted(entries, key=lambda entry: entry.at)


def _events(key: UUID) -> Iterator[Entry]:
    for event in TaskEvent.objects.filter(task_id=key).order_by("created_at", "id")[:MOST_ROWS]:
        change = (
            event.cause
            if event.from_state == event.to_state
            else f"{event.from_state or 'new'} → {event.to_state}"
        )
        yield Entry(at=event.created_at, kind="state", text=change, detail=f"{event.cause}, by {event.actor}")


def _attempts(key: UUID) -> Iterator[Entry]:
    attempts = Attempt.objects.filter(task_id=key).select_related("payload").order_by("number")
    for attempt in attempts[:MOST_ROWS]:
        name = f"attempt {attempt.number}"
        yield Entry(
            at=attempt.started_at,
            kind="attempt",
            text=f"{name} begins",
            detail=f"{attempt.provider}, {attempt.model}",
        )
        if attempt.finished_at is None:
            continue
        payload = getattr(attempt, "payload", None)
        usage = f"{attempt.usage_units.normalize():f} {attempt.usage_unit}" if attempt.usage_units else None
        facts = {
            "reason": attempt.reason or "none",
            "upstream id": attempt.upstream_id or NOT_REPORTED,
            "HTTP": attempt.http_status or NOT_REPORTED,
            "used": usage or NOT_REPORTED,
        }
        if attempt.outcome == Outcome.ACCEPTED:
            facts.pop("reason")
        yield Entry(
            at=attempt.finished_at,
            kind="attempt",
            text=f"{name}: {attempt.outcome}",
            detail=" · ".join(f"{title}: {value}" for title, value in facts.items()),
            raw=payload.response_body if payload else "",
        )


def _evidence(key: UUID) -> Iterator[Entry]:
    for item in Evidence.objects.filter(task_id=key).order_by("created_at", "id")[:MOST_ROWS]:
        facts = [f"source: {item.source}"]
        facts += [f"upstream id: {item.upstream_id}"] if item.upstream_id else []
        facts += [f"reason: {item.reason}"] if item.reason else []
        yield Entry(
            at=item.created_at, kind="evidence", text=f"evidence: {item.kind}", detail=" · ".join(facts)
        )
    for job in OrphanJob.objects.filter(task_id=key).order_by("created_at")[:MOST_ROWS]:
        yield Entry(
            at=job.created_at,
            kind="evidence",
            text="a second job of this task: our loss, never a charge",
            detail=f"upstream id: {job.upstream_id} · source: {job.source}",
        )


def _calls(key: UUID) -> Iterator[Entry]:
    for call in WebhookCall.objects.filter(task_id=key).order_by("received_at")[:MOST_ROWS]:
        yield Entry(
            at=call.received_at,
            kind="webhook",
            text=f"call-back: {call.word or NOT_REPORTED}",
            detail=f"upstream id: {call.upstream_id} · calls: {call.calls}",
        )


def _transfers(key: UUID) -> Iterator[Entry]:
    for transfer in Transfer.objects.filter(charge_id=key).order_by("created_at", "id")[:MOST_ROWS]:
        amount = format_money(transfer.amount_micros, settings.BILLING_CURRENCY)
        yield Entry(
            at=transfer.created_at,
            kind="money",
            text=f"{transfer.kind} {amount}",
            detail=f"{transfer.debit} → {transfer.credit}, by {transfer.actor}"
            + (f" · {transfer.note}" if transfer.note else ""),
        )
