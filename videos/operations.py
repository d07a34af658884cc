"""What an owner can do: submit, abandon, cancel. Deleting is in `deletion`; see Note [The claim comes
first].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from accounts.models import ApiToken
from billing import operations as billing
from billing import queries as billing_queries
from billing.errors import InsufficientBalance, PriceChanged
from billing.models import Account, Charge
from billing.prices import Quote
from core import db
from core.errors import OutcomeNotKnown, Unavailable
from core.ids import new_id
from core.nudge import nudge
from core.statements import insert
from tombstones import operations as tombstones
from tombstones.models import Claim
from videos import endings, queries
from videos.catalogue import get_model
from videos.errors import IdReused, ModelUnavailable, NotAbandonable, NotCancellable, NotReceived
from videos.locks import lock_task
from videos.models import Attempt, Payload, ProviderStatus, TaskEvent, VideoTask
from videos.providers.base import CancelSupport
from videos.providers.registry import get_provider
from videos.queries import TaskView
from videos.requests import Order, VideoRequest, judge_order, read_request
from videos.states import Outcome, State

ORDERABLE_INPUTS = ("text",)  # a model that needs an image cannot be ordered before there are uploads
OWNER = "owner"  # the actor of what an owner asked for


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """The task that belongs to the id. `is_new`: this request made it; otherwise it is a replay."""

    view: TaskView
    is_new: bool


@db.durable
def submit_video(
    *, owner_id: UUID, fields: Mapping[str, Any], token: ApiToken | None, now: datetime
) -> Submitted:
    """Order a video, once for ever per owner and id.

    A known id is answered from its claim, whatever the catalogue, prices or limits say today; a buried one
    comes back as a view that `is_buried`, and a remembered refusal as its failed task.
    Raises: Invalid, ModelUnavailable, PriceChanged, LimitReached (no row is left); IdReused; Unavailable
    (nothing was saved); OutcomeNotKnown (asking again with the same id is safe).
    """
    request = read_request(fields)
    known = queries.view_of(owner_id=owner_id, client_id=request.client_id)
    if known is not None:
        return _answer_known(known, request)
    queries.require_whole_memory()
    offer = _judge(request, now)
    task_id = new_id()
    accept = partial(
        _accept, task_id=task_id, owner_id=owner_id, request=request, offer=offer, token=token, now=now
    )
    try:
        return Submitted(view=db.run_until_known(accept), is_new=True)
    except tombstones.AlreadyClaimed:
        pass  # somebody else's, or our own whose answer was lost: the claim says which
    except db.NothingSaved as error:
        raise Unavailable from error
    except db.OutcomeUnknown as error:
        raise OutcomeNotKnown from error
    view = _view_of_claimed(owner_id=owner_id, client_id=request.client_id)
    if view.claim.pk == task_id:
        return Submitted(view=view, is_new=True)
    return _answer_known(view, request)


def _view_of_claimed(*, owner_id: UUID, client_id: str) -> TaskView:
    """What is kept under an id that has just been claimed, by this request or another.

    Raises: OutcomeNotKnown when it cannot be read: something was saved, so "nothing was" would be untrue.
    """
    with db.change_committed():
        view = queries.view_of(owner_id=owner_id, client_id=client_id)
    if view is None:
        raise OutcomeNotKnown
    return view


def quote_order(*, fields: Mapping[str, Any]) -> Quote:
    """What a request would cost today. Raises: Invalid, ModelUnavailable."""
    request = read_request(fields)
    return _quote(request)[1]


def _answer_known(view: TaskView, request: VideoRequest) -> Submitted:
    if view.task is not None and view.task.request_hash != request.request_hash:
        raise IdReused
    return Submitted(view=view, is_new=False)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A new request judged: the order, its price, and how its provider stands."""

    order: Order
    quote: Quote
    status: ProviderStatus | None

    @property
    def alarm(self) -> queries.Alarm | None:
        status = self.status
        if status is None or status.alarm is None or status.alarm_since is None:
            return None
        return queries.Alarm(reason=status.alarm, since=status.alarm_since)


def _judge(request: VideoRequest, now: datetime) -> Offer:
    """Everything that may refuse a new id before a row exists."""
    order, quote = _quote(request)
    if request.max_price_micros is not None and request.max_price_micros < quote.amount_micros:
        raise PriceChanged(old=request.max_price_micros, new=quote.amount_micros)
    status = queries.status_of(order.spec.provider)
    billing_queries.require_room_at_provider(
        provider=order.spec.provider,
        limit_micros=status.daily_spend_limit_micros if status else None,
        price=quote.amount_micros,
        now=now,
    )
    return Offer(order=order, quote=quote, status=status)


def _quote(request: VideoRequest) -> tuple[Order, Quote]:
    spec = get_model(request.model)
    if spec is None or spec.input not in ORDERABLE_INPUTS:
        raise ModelUnavailable(model=request.model)
    order = judge_order(request, spec)
    quote = billing_queries.quote(
        model=spec.model, resolution=order.resolution, audio=order.audio, seconds=order.seconds
    )
    if quote is None:  # no price, no job
        raise ModelUnavailable(model=request.model)
    return order, quote


@db.transaction
def _accept(
    *,
    task_id: UUID,
    owner_id: UUID,
    request: VideoRequest,
    offer: Offer,
    token: ApiToken | None,
    now: datetime,
) -> TaskView:
    """Claim, task, charge, money: together or not at all; what is committed, as it is then.

    Raises: AlreadyClaimed, LimitReached.
    """
    order, quote = offer.order, offer.quote
    claim = tombstones.insert_claim(claim_id=task_id, owner_id=owner_id, client_id=request.client_id, now=now)
    new_task = partial(_insert_task, claim=claim, request=request, offer=offer, now=now)
    charge: Charge | None = None
    try:
        with db.savepoint():
            task = new_task(state=State.SUBMITTING, next_check_at=now)
            charge = billing.charge(
                order=billing.ChargeOrder(
                    claim_id=task_id,
                    owner_id=owner_id,
                    max_price_micros=request.max_price_micros,
                    charges_on_refusal=order.spec.charges_on_refusal,
                    provider=order.spec.provider,
                    model=order.spec.model,
                    token_id=token.pk if token else None,
                ),
                quote=quote,
                now=now,
            )
            billing_queries.require_room_within_limits(
                owner_id=owner_id,
                token_id=token.pk if token else None,
                token_limit_micros=token.daily_spend_limit_micros if token else None,
                now=now,
            )
    except InsufficientBalance:
        # Remembered, not undone: a late duplicate must not spend money that is topped up afterwards.
        account = Account.objects.filter(pk=owner_id).first()
        figures = {
            "price_micros": quote.amount_micros,
            "balance_micros": min(account.balance_micros if account else 0, quote.amount_micros - 1),
        }
        task = new_task(
            state=State.FAILED, finished_at=now, error_code="insufficient_balance", error_params=figures
        )
    else:
        nudge("videos.tasks.dispatch_due")
    return queries.new_view(claim=claim, task=task, prompt=request.prompt, charge=charge, alarm=offer.alarm)


def _insert_task(
    *, claim: Claim, request: VideoRequest, offer: Offer, state: State, now: datetime, **fields: Any
) -> VideoTask:
    order = offer.order
    task = VideoTask(
        claim=claim,
        owner_id=claim.owner_id,
        client_id=request.client_id,
        request_hash=request.request_hash,
        provider=order.spec.provider,
        model=order.spec.model,
        seconds=order.seconds,
        resolution=order.resolution,
        aspect_ratio=order.aspect_ratio,
        audio=order.audio,
        seed=order.seed,
        state=state.value,
        created_at=now,
        entered_state_at=now,
        paused_seconds_before=queries.paused_seconds_of(offer.status, now=now),
        **fields,
    )
    insert(task)
    insert(Payload(task=task, prompt=request.prompt, request=dict(request.fields)))
    insert(
        TaskEvent(
            task_id=task.pk,
            to_state=state.value,
            cause=fields.get("error_code", "submitted"),
            actor=OWNER,
            created_at=now,
        )
    )
    return task


@db.durable
def abandon(*, owner_id: UUID, client_id: str, now: datetime) -> TaskView:
    """Fence an id: if it has not been seen, it is never accepted. Fencing it again is the same.

    Returns the buried claim; one that was deleted before keeps its reason.
    Raises: NotAbandonable when its task is alive; Unavailable; OutcomeNotKnown.
    """
    view = queries.view_of(owner_id=owner_id, client_id=client_id)
    if view is None:
        queries.require_whole_memory()
        try:
            db.run_until_known(partial(_fence, owner_id=owner_id, client_id=client_id, now=now))
        except tombstones.AlreadyClaimed:
            pass  # the claim below says whose
        except db.NothingSaved as error:
            raise Unavailable from error
        except db.OutcomeUnknown as error:
            raise OutcomeNotKnown from error
        view = _view_of_claimed(owner_id=owner_id, client_id=client_id)
    if not view.is_buried:
        raise NotAbandonable
    return view


@db.transaction
def _fence(*, owner_id: UUID, client_id: str, now: datetime) -> None:
    tombstones.insert_fence(owner_id=owner_id, client_id=client_id, now=now)


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """`is_done`: cancelled and refunded now; otherwise the provider is asked."""

    is_done: bool


@db.transaction
def cancel(*, owner_id: UUID, client_id: str, now: datetime) -> Cancelled:
    """Cancel a task: at once while nothing of it can be with the provider, else where the contract has it.

    Raises: NotReceived, NotCancellable.
    """
    view = queries.view_of(owner_id=owner_id, client_id=client_id)
    if view is None or view.is_buried:
        raise NotReceived
    task = lock_task(view.claim.pk)
    if task is None:
        raise NotReceived
    if task.state == State.SUBMITTING and not may_be_with_provider(task):
        endings.fail(
            task=task, failure=endings.Failure(code="cancelled"), cause="cancelled", actor=OWNER, now=now
        )
        return Cancelled(is_done=True)
    if task.state == State.FAILED and task.error_code == "cancelled":
        return Cancelled(is_done=True)
    if task.state not in (State.SUBMITTING, State.UNKNOWN, State.PROCESSING) or not can_ask_to_stop(task):
        raise NotCancellable
    if task.cancel_requested_at is None:
        changes: dict[str, Any] = {"cancel_requested_at": now}
        if task.state == State.PROCESSING:
            changes["next_check_at"] = now
        VideoTask.objects.filter(pk=task.pk).update(**changes)
        endings.note_event(task=task, to=task.state, cause="cancel_requested", actor=OWNER, now=now)
        nudge("videos.tasks.poll_due")
    return Cancelled(is_done=False)


@db.transaction_required
def may_be_with_provider(task: VideoTask) -> bool:
    """Whether an attempt is in flight or unclear. Read after the task's lock, in a statement of its own."""
    return Attempt.objects.filter(
        task_id=task.pk, outcome__in=[Outcome.INFLIGHT, Outcome.UNCLEAR, Outcome.ACCEPTED]
    ).exists()


def can_ask_to_stop(task: VideoTask) -> bool:
    """Whether the provider's contract has a cancellation, and the video is not made already."""
    if task.phase == "storing":
        return False
    return get_provider(task.provider).capabilities.cancel != CancelSupport.NONE
