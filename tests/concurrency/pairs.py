"""The ten pairs of operations on one id: how each begins, what both do, what must hold afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.utils import timezone

from billing import operations as billing
from billing.models import Charge, PriceVersion, Resolution, Transfer
from core import db
from core.http import Deadline, HttpResponse
from core.ids import webhook_key
from files import operations as files
from files.models import StoredFile
from tests import makers
from tests.concurrency.submissions import abandon, cancel, submit
from tombstones.models import Claim
from videos import deletion, desk
from videos.engine import dispatch, polling, results, unknowns, webhooks
from videos.engine.leases import take_due
from videos.models import Attempt, OrphanJob, TaskEvent, VideoTask
from videos.providers.base import Accepted, WebhookNotice
from videos.providers.registry import get_provider

PROVIDER = "fal"
Violations = list[str]


@dataclass
class Case:
    """One id of one owner, and what the operations on it need."""

    owner: makers.Owner
    client_id: str = field(default_factory=makers.new_client_id)
    begun: Any = None  # what an operation has in hand when it begins

    @property
    def claims(self) -> list[Claim]:
        return list(Claim.objects.filter(owner_id=self.owner.id, client_id=self.client_id))

    @property
    def task(self) -> VideoTask | None:
        return VideoTask.objects.filter(client_id=self.client_id).first()

    @property
    def charges(self) -> list[Charge]:
        return list(Charge.objects.filter(claim__in=self.claims))

    @property
    def resolutions(self) -> list[str]:
        return list(Resolution.objects.filter(charge__in=self.charges).values_list("outcome", flat=True))

    @property
    def attempts(self) -> list[Attempt]:
        ids = [claim.pk for claim in self.claims]
        return list(Attempt.objects.filter(task_id__in=ids).order_by("number"))

    def endings(self) -> int:
        ids = [claim.pk for claim in self.claims]
        ends = TaskEvent.objects.filter(task_id__in=ids, to_state__in=["completed", "failed"])
        return ends.exclude(from_state__in=["completed", "failed"]).count()


@dataclass(frozen=True, kw_only=True)
class Pair:
    """`first` and `second` are played in every order; `rule` says what is wrong after one of them."""

    name: str
    prepare: Callable[[], Case]
    first: Callable[[Case], Any]
    second: Callable[[Case], Any]
    rule: Callable[[Case, Sequence[Any]], Violations]


def broken(**rules: bool) -> Violations:
    """The names of the rules that do not hold, in words."""
    return [name.replace("_", " ") for name, holds in rules.items() if not holds]


def named(outcome: Any) -> str:
    """What an operation came to, by name."""
    return type(outcome).__name__


# --- how a case begins ----------------------------------------------------------------------------


def fresh() -> Case:
    """A new owner and an id that nobody has seen; what earlier orders left behind is not due any more."""
    later = timezone.now() + timedelta(days=1)
    VideoTask.objects.filter(next_check_at__isnull=False).update(next_check_at=later, lease_until=None)
    Attempt.objects.filter(late_check_at__isnull=False).update(late_check_at=None)
    return Case(owner=makers.make_owner(balance="10"))


def submitted(**fields: Any) -> Case:
    case = fresh()
    makers.submit(case.owner, id=case.client_id, **fields)
    return case


def taken() -> Case:
    case = submitted()
    case.begun = [lease_of_one(case, "dispatch")]
    return case


def cancelled() -> Case:
    case = submitted()
    cancel(case.owner, case.client_id)
    return case


def accept(sending: Any, upstream_id: str) -> None:
    """The provider's yes, without a provider."""
    response = HttpResponse(status=200, headers={}, body=b"{}")
    answer = Accepted(upstream_id=upstream_id)
    dispatch.record_answer(sending=sending, answer=answer, response=response)


def running() -> Case:
    case = submitted()
    accept(begin_sending(case), f"job-{case.client_id}")
    return case


def to_be_polled() -> Case:
    case = running()
    VideoTask.objects.filter(client_id=case.client_id).update(next_check_at=timezone.now())
    return case


def ready_to_publish() -> Case:
    """A running task whose video is under a pending key, in the hands of the worker that fetched it."""
    case = running()
    (item,) = polling.with_jobs([lease_of_one(case, "poll")])
    polling.start_storing(item=item, now=db.now())
    (item,) = polling.with_jobs([lease_of_one(case, "store")])
    key = files.reserve_key(folder="results", suffix=".mp4", now=db.now())
    content = files.Content(content_type="video/mp4", size_bytes=1, sha256="0" * 64)
    case.begun = (item, results.Fetched(key=key, content=content, usage=None))
    return case


def lease_of_one(case: Case, work: str) -> Any:
    """Take the case's task for a kind of work, whoever holds it; nothing else is due."""
    VideoTask.objects.filter(client_id=case.client_id).update(next_check_at=timezone.now())
    task = VideoTask.objects.get(client_id=case.client_id)
    (taken,) = take_due(work=work, provider=task.provider, limit=2)
    return taken


def begin_sending(case: Case) -> Any:
    """The attempt of a task that waits to be sent, committed, with nothing sent yet."""
    task, lease = lease_of_one(case, "dispatch")
    provider = get_provider(task.provider)
    return dispatch.begin_attempt(lease=lease, provider=provider, deadline=Deadline(30), now=db.now())


def given_up_tomorrow() -> Case:
    """An unknown task past its time limit, leased by policy, whose sender has the provider's yes in hand."""
    case = submitted(model=makers.BLIND_MODEL)
    sending = begin_sending(case)
    _, lease = lease_of_one(case, "dispatch")
    dispatch.begin_attempt(lease=lease, provider=sending.provider, deadline=sending.deadline, now=db.now())
    makers.age([case.client_id], first_unclear_at=timedelta(hours=25))
    case.begun = (sending, lease_of_one(case, "unknown")[1])
    return case


# --- what both do ---------------------------------------------------------------------------------


def do_submit(case: Case) -> Any:
    return submit(case.owner, case.client_id)


def do_abandon(case: Case) -> Any:
    return abandon(case.owner, case.client_id)


def do_delete(case: Case) -> None:
    deletion.delete_task(owner_id=case.owner.id, client_id=case.client_id, now=timezone.now())


def do_cancel(case: Case) -> Any:
    return cancel(case.owner, case.client_id)


def do_dispatch(case: Case) -> int:
    return dispatch.dispatch_provider(PROVIDER, rounds=1)


def do_send(case: Case) -> None:
    """A worker that has just taken the task begins its attempt, sends it and records the answer."""
    deadline = Deadline(30)
    ready, failure = dispatch._begin_all(work=case.begun, provider=get_provider(PROVIDER), deadline=deadline)
    async_to_sync(dispatch._send_all)(ready)
    if failure is not None:
        raise failure


def do_sweep(case: Case) -> int:
    """The lease runs out, as time passes, and the sweeper's worker takes the task over."""
    past = timezone.now() - timedelta(seconds=1)
    VideoTask.objects.filter(client_id=case.client_id, lease_token__isnull=False).update(
        lease_until=past, next_check_at=past
    )
    return dispatch.dispatch_provider(PROVIDER, rounds=1)


def do_poll(case: Case) -> int:
    return polling.poll_provider(PROVIDER)


class Caller:
    """A provider whose call-backs are all true; signatures have tests of their own."""

    name = PROVIDER

    def verify_webhook(self, *_: Any) -> None:
        pass

    def read_webhook(self, raw_body: bytes) -> WebhookNotice:
        return WebhookNotice(upstream_id=raw_body.decode(), word="OK")


def do_call_back(case: Case) -> None:
    """A call-back, and the worker that it wakes."""
    webhooks.receive_call(
        provider=Caller(),  # type: ignore[arg-type]  # as much of a provider as is asked
        key=webhook_key(case.begun),
        headers={},
        raw_body=f"job-{case.client_id}".encode(),
        now=timezone.now(),
    )
    polling.poll_provider(PROVIDER)


def to_be_polled_and_called() -> Case:
    case = to_be_polled()
    case.begun = case.claims[0].pk
    return case


def do_publish(case: Case) -> None:
    item, fetched = case.begun
    results.record_outcome(item=item, outcome=fetched, provider=get_provider(PROVIDER))


def do_fail(case: Case) -> None:
    item, _ = case.begun
    desk.fail_and_refund(task_id=item.task.pk, actor="support", reason="asked", now=timezone.now())


def do_give_up(case: Case) -> None:
    sending, lease = case.begun
    unknowns.conclude(lease=lease, provider=sending.provider, match=None, now=db.now())


def do_answer_late(case: Case) -> None:
    accept(case.begun[0], f"job-{case.client_id}")


OLD, NEW = 400_000, 500_000  # what a second costs us, in micro-units; times 1.3


def at_the_old_price() -> Case:
    set_price(OLD)
    return fresh()


def set_price(provider_micros: int) -> None:
    billing.set_price(
        model=makers.MODEL,
        resolution="720p",
        audio=True,
        unit="second",
        provider_micros=provider_micros,
        markup="1.3",
        now=timezone.now(),
    )


def do_set_price(case: Case) -> None:
    set_price(NEW)


def do_submit_at_most(case: Case) -> Any:
    return submit(case.owner, case.client_id, max_price="4.16")


# --- what must hold -------------------------------------------------------------------------------


def one_charge(case: Case, outcomes: Sequence[Any]) -> Violations:
    news = sorted(outcome.is_new for outcome in outcomes if named(outcome) == "Submitted")
    return broken(
        one_claim=len(case.claims) == 1,
        one_charge=len(case.charges) == 1,
        one_of_both_is_the_first=news == [False, True],
    )


def buried_for_ever(case: Case, outcomes: Sequence[Any]) -> Violations:
    answered, deleted = outcomes
    return broken(
        one_claim=len(case.claims) == 1,
        stays_buried=[claim.state for claim in case.claims] == ["buried"] and case.task is None,
        never_a_second_charge=len(case.charges) == 1 and case.resolutions == ["refunded"],
        answered_as_a_replay=named(answered) == "Submitted" and not answered.is_new,
        deleted=deleted is None,
    )


def charged_or_fenced(case: Case, outcomes: Sequence[Any]) -> Violations:
    submitted, abandoned = outcomes
    (state, *more) = [claim.state for claim in case.claims]
    live = named(abandoned) == "NotAbandonable" and submitted.is_new and state == "live"
    fenced = named(abandoned) == "TaskView" and not submitted.is_new and state == "buried"
    return broken(
        one_claim=not more,
        charged_and_live_or_fenced_and_not_charged=(live and len(case.charges) == 1)
        or (fenced and not case.charges),
    )


def sent_or_cancelled(case: Case, outcomes: Sequence[Any]) -> Violations:
    _, stopped = outcomes
    task, attempts = case.task, case.attempts
    assert task is not None
    not_sent = not attempts and case.resolutions == ["refunded"]
    sent = [attempt.outcome for attempt in attempts] == ["accepted"] and not case.resolutions
    return broken(
        nothing_sent_once_cancelled=not_sent or named(stopped) == "NotCancellable" or not stopped.is_done,
        refunded_or_sent=(task.state == "failed" and not_sent) or (task.state == "processing" and sent),
    )


def sent_once(case: Case, outcomes: Sequence[Any]) -> Violations:
    posts = POSTS.count(webhook_key(case.claims[0].pk))
    task = case.task
    return broken(
        one_post=posts == 1,
        one_attempt=len(case.attempts) == 1,
        no_error=not any(isinstance(outcome, Exception) for outcome in outcomes),
        the_answer_is_kept=[attempt.outcome for attempt in case.attempts] == ["accepted"],
        it_runs=task is not None and task.state == "processing",
        no_second_job=not OrphanJob.objects.filter(task_id=case.claims[0].pk).exists(),
    )


POSTS: list[str] = []  # the call-back keys of the orders that were sent


def one_completion(case: Case, outcomes: Sequence[Any]) -> Violations:
    """A woken worker that meets the lock of the old one skips the task, which stays due."""
    task = case.task
    assert task is not None
    is_due = task.next_check_at is not None and task.next_check_at <= timezone.now()
    is_free = task.lease_token is None
    if task.phase is None:
        polling.poll_provider(PROVIDER)
    after = case.task
    assert after is not None
    return broken(
        no_error=not any(isinstance(outcome, Exception) for outcome in outcomes),
        it_is_due=is_due and is_free,
        the_result_is_fetched_next=(after.state, after.phase) == ("processing", "storing"),
        completed_once=completes_once(case),
    )


def completes_once(case: Case) -> bool:
    """Two workers that come for the result now, one after the other: the second finds nothing to do."""
    taken = take_due(work="store", provider=PROVIDER, limit=2)
    again = take_due(work="store", provider=PROVIDER, limit=2)
    if [task.client_id for task, _ in taken] != [case.client_id] or again:
        return False
    key = files.reserve_key(folder="results", suffix=".mp4", now=db.now())
    content = files.Content(content_type="video/mp4", size_bytes=1, sha256="0" * 64)
    (item,) = polling.with_jobs(taken)
    results.publish(item=item, fetched=results.Fetched(key=key, content=content, usage=None), now=db.now())
    return case.endings() == 1 and case.resolutions == ["settled"]


def one_resolution(case: Case, outcomes: Sequence[Any]) -> Violations:
    published, failed = outcomes
    task = case.task
    assert task is not None
    files_of_it = StoredFile.objects.filter(task_id=task.pk).count()
    kinds = sorted(Transfer.objects.filter(charge_id=task.pk).values_list("kind", flat=True))
    completed = (task.state, case.resolutions, files_of_it) == ("completed", ["settled"], 1)
    refunded = (task.state, case.resolutions, files_of_it) == ("failed", ["refunded"], 0)
    return broken(
        exactly_one_ending=case.endings() == 1,
        settled_with_a_video_or_refunded_without=completed or refunded,
        moved_once=kinds == (["charge", "settle"] if completed else ["charge", "refund"]),
        who_lost_was_told=published is None
        and named(failed) == ("ActionRefused" if completed else "NoneType"),
    )


def refunded_or_bound(case: Case, outcomes: Sequence[Any]) -> Violations:
    gave_up, answered = outcomes
    task = case.task
    assert task is not None
    (attempt,) = case.attempts
    bound = (task.state, case.resolutions, attempt.late_check_at) == ("processing", [], None)
    gift = (task.state, case.resolutions) == ("failed", ["refunded"]) and attempt.late_check_at is not None
    return broken(
        the_answer_is_kept=attempt.outcome == "accepted" and answered is None,
        bound_and_not_refunded_or_refunded_and_followed=bound or gift,
        who_came_late_decides_nothing=named(gave_up) == ("StaleLease" if bound else "NoneType"),
    )


def deleted_after_the_end(case: Case, outcomes: Sequence[Any]) -> Violations:
    published, deleted = outcomes
    (claim,) = case.claims
    kept = named(deleted) == "NotDeletable" and claim.state == "live" and case.task is not None
    gone = deleted is None and claim.state == "buried" and case.task is None
    return broken(
        kept_or_gone=kept or gone,
        settled=case.resolutions == ["settled"] and published is None,
        no_file_of_a_buried_task=kept or not StoredFile.objects.filter(task_id=claim.pk).exists(),
    )


def at_one_price(case: Case, outcomes: Sequence[Any]) -> Violations:
    changed, ordered = outcomes
    if named(ordered) == "PriceChanged":
        return broken(nothing_is_left_of_a_refusal=not case.claims and not case.charges)
    (charge,) = case.charges
    version = PriceVersion.objects.get(pk=charge.price_version_id)
    return broken(
        both_went_through=changed is None and named(ordered) == "Submitted",
        charged_what_was_frozen=charge.amount_micros == 8 * version.unit_price_micros
        and charge.unit_price_micros == version.unit_price_micros,
        not_more_than_allowed=charge.amount_micros <= makers.PRICE_MICROS,
        paid=case.owner.balance_micros == 10_000_000 - charge.amount_micros,
    )


def pair(name: str, prepare: Any, first: Any, second: Any, rule: Any) -> Pair:
    return Pair(name=name, prepare=prepare, first=first, second=second, rule=rule)


PAIRS = {
    item.name: item
    for item in (
        pair("submit/submit", fresh, do_submit, do_submit, one_charge),
        pair("submit/delete", cancelled, do_submit, do_delete, buried_for_ever),
        pair("submit/abandon", fresh, do_submit, do_abandon, charged_or_fenced),
        pair("dispatch/cancel", submitted, do_dispatch, do_cancel, sent_or_cancelled),
        pair("dispatch/sweeper", taken, do_send, do_sweep, sent_once),
        pair("poll/webhook", to_be_polled_and_called, do_poll, do_call_back, one_completion),
        pair("fail/settle", ready_to_publish, do_publish, do_fail, one_resolution),
        pair("give up/late answer", given_up_tomorrow, do_give_up, do_answer_late, refunded_or_bound),
        pair("delete/complete", ready_to_publish, do_publish, do_delete, deleted_after_the_end),
        pair("price change/submit", at_the_old_price, do_set_price, do_submit_at_most, at_one_price),
    )
}
