"""How a task changes state and how it ends. The money is resolved in the transaction of the final state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

import structlog

from billing import operations as billing
from billing.models import Charge
from billing.prices import settled_amount
from core import db
from tombstones.models import Claim
from videos import deletion
from videos.models import Evidence, TaskEvent, VideoTask
from videos.states import EvidenceKind, State, sources_of

log = structlog.get_logger(__name__)

POLICY = "policy"  # the actor of decisions that rules make by themselves


class Overtaken(Exception):
    """The task is no longer in a state from which this change is possible; nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why there is no video: a code of the message catalogue, its figures, and the provider's cleaned
    words.
    """

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    reason: str = ""  # how the provider itself called it: failed, expired, rejected …
    keeps_charge: bool = False  # the announced rule on outputs that the provider withheld and charged for

    @property
    def cause(self) -> str:
        """The code, and the provider's own reason where it has one: one word for people, both for staff."""
        return f"{self.code}:{self.reason}" if self.reason and self.reason != self.code else self.code


@db.transaction_required
def change_state(*, task: VideoTask, to: State, cause: str, actor: str, now: datetime, **fields: Any) -> None:
    """Compare-and-swap the state of a locked task and write its event. Raises: Overtaken."""
    changed = VideoTask.objects.filter(pk=task.pk, state=task.state, state__in=sources_of(to)).update(
        state=to, entered_state_at=now, lease_token=None, lease_until=None, **fields
    )
    if not changed:
        raise Overtaken(f"{task.state} → {to}")
    note_event(task=task, to=to, cause=cause, actor=actor, now=now)
    task.state = to


@db.transaction_required
def note_event(*, task: VideoTask, to: str, cause: str, actor: str, now: datetime) -> None:
    TaskEvent.objects.create(
        task_id=task.pk, from_state=task.state, to_state=to, cause=cause[:64], actor=actor, created_at=now
    )
    told = {"task_id": str(task.pk), "from_state": str(task.state), "to_state": str(to), "cause": cause[:64]}
    db.after_commit(partial(log.info, "task_changed", **told))


@db.transaction_required
def note_evidence(
    *,
    task_id: Any,
    kind: EvidenceKind,
    source: str,
    now: datetime,
    attempt_id: Any = None,
    upstream_id: str = "",
    reason: str = "",
) -> None:
    Evidence.objects.create(
        task_id=task_id,
        attempt_id=attempt_id,
        kind=kind,
        source=source,
        upstream_id=upstream_id,
        reason=reason[:500],
        created_at=now,
    )


@db.transaction_required
def complete(
    *, task: VideoTask, file_id: Any, used: Decimal | None, cause: str, actor: str, now: datetime
) -> None:
    """End a locked task with its published result: settle, and give back what was not used. Raises:
    Overtaken.
    """
    if task.state != State.PROCESSING:
        raise Overtaken(task.state)
    _lock_claim_if_it_will_be_buried(task)
    charge = Charge.objects.get(pk=task.pk)
    kept = settled_amount(unit_price_micros=charge.unit_price_micros, quantity=charge.quantity, used=used)
    billing.settle(charge_id=charge.pk, settled_micros=kept, cause="completed", actor=actor, now=now)
    change_state(
        task=task,
        to=State.COMPLETED,
        cause=cause,
        actor=actor,
        now=now,
        finished_at=now,
        next_check_at=None,
        result_file_id=file_id,
        progress=100,
        queue_position=None,
        tries=0,
    )
    deletion.bury_if_requested(task=task, now=now)


@db.transaction_required
def fail(*, task: VideoTask, failure: Failure, cause: str, actor: str, now: datetime) -> None:
    """End a locked task without a video: refund, all of it. Raises: Overtaken.

    The one exception: a model with `charges_on_refusal` whose output the provider withheld *and* charged for
    is settled, as announced before ordering and frozen in the charge.
    """
    if State.FAILED not in {to for to in State if task.state in sources_of(to)}:
        raise Overtaken(task.state)
    _lock_claim_if_it_will_be_buried(task)
    charge = Charge.objects.get(pk=task.pk)
    code = failure.code
    if failure.keeps_charge and charge.charges_on_refusal:
        code = "output_withheld_charged"
        billing.settle(
            charge_id=charge.pk, settled_micros=charge.amount_micros, cause=code, actor=actor, now=now
        )
    else:
        billing.refund(charge_id=charge.pk, cause=code, actor=actor, now=now)
    change_state(
        task=task,
        to=State.FAILED,
        cause=cause,
        actor=actor,
        now=now,
        finished_at=now,
        next_check_at=None,
        error_code=code,
        error_params=dict(failure.params),
        error_detail=failure.detail[:2000],
        queue_position=None,
    )
    deletion.bury_if_requested(task=task, now=now)


def _lock_claim_if_it_will_be_buried(task: VideoTask) -> None:
    """Locks are taken in one order, claim before account."""
    if task.delete_requested_at is not None:
        Claim.objects.select_for_update().get(pk=task.pk)
