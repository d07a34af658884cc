"""Reads of tasks. Claim, task and money shown together come from one statement, so that they fit together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import CharField, OuterRef, Q, QuerySet, Subquery, Sum, UUIDField

from billing.kinds import ChargeState, Kind, charge_state
from billing.models import Charge, Resolution, Transfer
from core.statements import CompiledQuery, Parameter
from tombstones.models import Claim, ClaimState
from videos.errors import Quarantined
from videos.models import Attempt, ProviderStatus, TaskEvent, VideoTask
from videos.states import FINAL, UNFINISHED, State

MAX_IDS = 100  # ids in one bulk read


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A provider that we cannot send to now."""

    reason: str
    since: datetime


@dataclass(frozen=True, kw_only=True)
class TaskView:
    """A claim with what belongs to it, as one statement saw it. `task` is None when the claim is buried."""

    claim: Claim
    task: VideoTask | None
    prompt: str
    charge: Charge | None
    resolution: Resolution | None
    goodwill_micros: int
    alarm: Alarm | None

    @property
    def is_buried(self) -> bool:
        return self.claim.state == ClaimState.BURIED

    @property
    def charged_micros(self) -> int:
        return self.charge.amount_micros if self.charge else 0

    @property
    def returned_micros(self) -> int:
        """Refunded, returned with the settlement, and given back by support."""
        return (self.resolution.returned_micros if self.resolution else 0) + self.goodwill_micros

    @property
    def money(self) -> ChargeState:
        return charge_state(
            charged=self.charge.amount_micros if self.charge else None,
            outcome=self.resolution.outcome if self.resolution else None,
            returned=self.returned_micros,
        )


def _with_everything(claims: QuerySet[Claim]) -> QuerySet[Claim]:
    goodwill = (
        Transfer.objects.filter(charge_id=OuterRef("pk"), kind=Kind.GOODWILL)
        .order_by()
        .values("charge_id")
        .annotate(sum=Sum("amount_micros"))
        .values("sum")
    )
    alarms = ProviderStatus.objects.filter(provider=OuterRef("task__provider"), alarm__isnull=False)
    related = claims.select_related("task__payload", "charge__resolution").defer("task__payload__request")
    return related.annotate(
        goodwill_micros=Subquery(goodwill),
        alarm=Subquery(alarms.values("alarm")[:1]),
        alarm_since=Subquery(alarms.values("alarm_since")[:1]),
    )


def _view(claim: Any) -> TaskView:
    task: VideoTask | None = getattr(claim, "task", None)
    charge: Charge | None = getattr(claim, "charge", None)
    payload = getattr(task, "payload", None) if task else None
    return TaskView(
        claim=claim,
        task=task,
        prompt=payload.prompt if payload else "",
        charge=charge,
        resolution=getattr(charge, "resolution", None) if charge else None,
        goodwill_micros=claim.goodwill_micros or 0,
        alarm=Alarm(reason=claim.alarm, since=claim.alarm_since) if claim.alarm else None,
    )


def new_view(
    *, claim: Claim, task: VideoTask, prompt: str, charge: Charge | None, alarm: Alarm | None
) -> TaskView:
    """The view of rows that this transaction inserts, without reading them back."""
    return TaskView(
        claim=claim,
        task=task,
        prompt=prompt,
        charge=charge,
        resolution=None,
        goodwill_micros=0,
        alarm=alarm,
    )


_CLAIM_OF_ID = CompiledQuery(
    lambda: _with_everything(
        Claim.objects.filter(
            owner_id=Parameter("owner_id", UUIDField()), client_id=Parameter("client_id", CharField())
        )
    )
)


def view_of(*, owner_id: UUID, client_id: str) -> TaskView | None:
    """The owner's id with its task and money; None for an unseen id and for a stranger's alike."""
    claim = _CLAIM_OF_ID.first(owner_id=owner_id, client_id=client_id)
    return None if claim is None else _view(claim)


def view_of_task(task_id: UUID) -> TaskView | None:
    """For staff: the same view by task id, whoever owns it."""
    claim = _with_everything(Claim.objects.filter(pk=task_id)).first()
    return None if claim is None else _view(claim)


def require_whole_memory() -> None:
    """Refuse to judge an unseen id while the database is a restored backup. Raises: Quarantined."""
    if settings.QUARANTINE:
        raise Quarantined


def views_of(*, owner_id: UUID, client_ids: Sequence[str]) -> dict[str, TaskView]:
    """Many ids at once, by client id; ids that are not there are unseen or a stranger's."""
    claims = _with_everything(Claim.objects.filter(owner_id=owner_id, client_id__in=client_ids))
    return {claim.client_id: _view(claim) for claim in claims}


@dataclass(frozen=True, kw_only=True)
class ListFilter:
    """What a list shows. `group`: all, running (unfinished), ready, failed, or one state."""

    group: str = "all"
    model: str = ""
    words: str = ""


_GROUPS = {
    "running": Q(finished_at__isnull=True),
    "finished": Q(finished_at__isnull=False),
    "ready": Q(state=State.COMPLETED),
    # The second condition names an index for the few that have not ended.
    **{state.value: Q(state=state, finished_at__isnull=True) for state in UNFINISHED},
    **{state.value: Q(state=state) for state in FINAL},
}


def list_views(
    *, owner_id: UUID, chosen: ListFilter, limit: int, before: tuple[datetime, UUID] | None = None
) -> list[TaskView]:
    """The owner's tasks, newest first, finished ones included; `before` is the last row of the page
    before.
    """
    tasks = VideoTask.objects.filter(owner_id=owner_id)
    if chosen.group in _GROUPS:
        tasks = tasks.filter(_GROUPS[chosen.group])
    if chosen.model:
        tasks = tasks.filter(model=chosen.model)
    if chosen.words:
        tasks = tasks.filter(payload__prompt__icontains=chosen.words)
    if before is not None:
        at, key = before
        tasks = tasks.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=key))
    # The page is chosen first, so that only its rows are joined with claim, money and words.
    page = tasks.order_by("-created_at", "-pk").values("pk")[:limit]
    rows = _with_everything(Claim.objects.filter(pk__in=page)).order_by("-task__created_at", "-task__pk")
    return [_view(claim) for claim in rows]


def unfinished_twin(*, owner_id: UUID, request_hash: str) -> VideoTask | None:
    """An unfinished task of this owner with the identical request, if there is one."""
    return (
        VideoTask.objects.filter(owner_id=owner_id, finished_at__isnull=True, request_hash=request_hash)
        .order_by("-created_at")
        .first()
    )


def attempts_of(task_id: UUID) -> list[Attempt]:
    return list(Attempt.objects.filter(task_id=task_id).order_by("number"))


def events_of(task_id: UUID) -> list[TaskEvent]:
    return list(TaskEvent.objects.filter(task_id=task_id).order_by("created_at", "id"))


def paused_seconds(*, provider: str, now: datetime) -> float:
    """How long in total we could not send to a provider, a present alarm included. Seconds."""
    return paused_seconds_of(status_of(provider), now=now)


_STATUS = CompiledQuery(lambda: ProviderStatus.objects.filter(provider=Parameter("provider", CharField())))


def status_of(provider: str) -> ProviderStatus | None:
    """What we know of a provider as a whole; None for one that never had an alarm or a limit."""
    return _STATUS.first(provider=provider)


def paused_seconds_of(status: ProviderStatus | None, *, now: datetime) -> float:
    """The same from a status that was read already. Seconds."""
    if status is None:
        return 0.0
    current = (now - status.alarm_since).total_seconds() if status.alarm_since else 0.0
    return status.paused_seconds + max(0.0, current)
