"""C57: what was marked for deletion while it ran ends once, is buried, and nothing late brings it back."""

from itertools import permutations
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.files.storage import default_storage
from django.utils import timezone

from core.http import ReadClient
from files import operations as files
from files.models import StoredFile, StoredObject
from tests import makers
from tests.cases.evidence import changed_tables, kinds_of, rows
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import race_to_success
from tests.concurrency.submissions import begin_sending, call_back, lease_of, send
from tests.makers import PRICE_MICROS, Owner
from tombstones.models import Claim
from videos import desk
from videos.engine import dispatch, late, polling, results, sweeping, unknowns
from videos.models import Attempt, AttemptPayload, Payload, VideoTask
from videos.providers.registry import get_provider

FULL = 100_000_000
FAILS = " [sim: fail='out of order' webhook_none]"
MADE = " [sim: webhook_none]"
# What a made and a failed video cost, and the transfers that say so.
ENDS = [(MADE, FULL - PRICE_MICROS, ["charge", "settle"]), (FAILS, FULL, ["charge", "refund"])]


def mark(client_id: str) -> None:
    """What the deletion of a task's canvas leaves on it while its outcome is open."""
    VideoTask.objects.filter(client_id=client_id).update(delete_requested_at=timezone.now())


def running(owner: Owner, prompt: str = MADE) -> dict[str, Any]:
    """The order of a task that runs at the provider, where its video is made already."""
    document = makers.order(prompt=f"a cat{prompt}")
    assert makers.post(owner, document).status_code == 201
    dispatch.dispatch_due()
    assert makers.task_of(owner, document["id"]).state == "processing"
    return document


def work() -> None:
    """A worker's whole round, with the waiting in between skipped."""
    makers.let_leases_run_out()
    makers.work()


def assert_gone_for_ever(owner: Owner, document: dict[str, Any], balance: int, kinds: list[str]) -> None:
    client_id = document["id"]
    claim = Claim.objects.get(client_id=client_id)
    assert (claim.state, claim.reason) == ("buried", "canvas_deleted")
    assert VideoTask.objects.count() == Payload.objects.count() == AttemptPayload.objects.count() == 0
    assert (kinds_of(owner, client_id), owner.balance_micros) == (kinds, balance)
    assert makers.get(owner, client_id).status_code == 410
    assert makers.post(owner, document).status_code == 410
    assert owner.api.get("/api/videos").json()["results"] == []
    assert (kinds_of(owner, client_id), owner.balance_micros) == (kinds, balance)
    assert_books_balance()


def assert_bytes_are_removed() -> None:
    assert StoredFile.objects.count() == 0
    stored = {item.key: item.state for item in StoredObject.objects.all()}
    assert set(stored.values()) <= {"dead"}
    assert files.remove_dead(now=timezone.now()) == len(stored)
    assert [key for key in stored if default_storage.exists(key)] == []
    assert files.remove_dead(now=timezone.now()) == 0


@pytest.mark.django_db
@pytest.mark.parametrize(("prompt", "balance", "kinds"), ENDS)
@pytest.mark.parametrize("order", list(permutations(["poll", "webhook", "worker"])))
def test_in_every_order_a_marked_task_is_buried_once_final_and_nothing_later_brings_it_back(
    owner: Owner, simulator: Any, order: tuple[str, ...], prompt: str, balance: int, kinds: list[str]
) -> None:
    document = running(owner, prompt)
    client_id = document["id"]
    mark(client_id)
    shown = makers.get(owner, client_id)
    # Paid for and not ended: still there, for its owner to see.
    assert (shown.status_code, shown.json()["state"]) == (200, "processing")

    def call() -> None:
        assert call_back(owner, simulator, client_id).status_code == 200

    steps = {"poll": polling.poll_due, "webhook": call, "worker": results.store_due}
    for name in (*order, *order):
        makers.make_due()
        steps[name]()
    assert_gone_for_ever(owner, document, balance, kinds)
    before = rows()
    for name in order:
        if name != "webhook":
            makers.make_due()
            steps[name]()
    work()
    assert changed_tables(before) == []
    call()
    assert changed_tables(before) == ["videos_webhookcall"]  # it is counted, and wakes nothing
    assert simulator.count() == 1
    assert_bytes_are_removed()


@pytest.mark.django_db
def test_a_task_marked_when_it_had_just_ended_is_buried_by_the_sweeper_and_keeps_its_settlement(
    owner: Owner, simulator: Any
) -> None:
    document = running(owner)
    work()
    (stored,) = StoredObject.objects.all()
    assert default_storage.exists(stored.key)
    mark(document["id"])
    sweeping.sweep(now=timezone.now())
    assert_gone_for_ever(owner, document, FULL - PRICE_MICROS, ["charge", "settle"])
    assert_bytes_are_removed()
    assert not default_storage.exists(stored.key)


@pytest.mark.django_db
@pytest.mark.parametrize(("prompt", "balance", "kinds"), ENDS)
def test_a_reading_in_hand_when_the_task_was_buried_changes_nothing(
    owner: Owner, simulator: Any, prompt: str, balance: int, kinds: list[str]
) -> None:
    document = running(owner, prompt)
    mark(document["id"])
    provider = get_provider("fal")
    in_hand = polling.with_jobs([lease_of("poll", document["id"])])

    async def read() -> Any:
        async with ReadClient(total_seconds=5) as client:
            return await polling._read_one(in_hand[0], provider, client)

    reading = async_to_sync(read)()
    work()
    assert_gone_for_ever(owner, document, balance, kinds)
    before = rows()
    polling.record_readings(work=in_hand, readings=[reading], provider=provider)
    assert changed_tables(before) == []


@pytest.mark.django_db
def test_a_download_that_ends_after_the_burial_is_thrown_away_with_its_bytes(
    owner: Owner, simulator: Any
) -> None:
    document = running(owner)
    mark(document["id"])
    makers.make_due()
    polling.poll_due()
    provider = get_provider("fal")
    (item,) = polling.with_jobs([lease_of("store", document["id"])])

    async def fetch() -> Any:
        async with ReadClient(total_seconds=5) as client:
            return await results.fetch(item=item, provider=provider, client=client)

    fetched = async_to_sync(fetch)()
    assert isinstance(fetched, results.Fetched)
    assert default_storage.exists(fetched.key)
    work()  # another worker, after this one's lease ran out
    assert_gone_for_ever(owner, document, FULL - PRICE_MICROS, ["charge", "settle"])
    results.record_outcome(item=item, outcome=fetched, provider=provider)
    assert_gone_for_ever(owner, document, FULL - PRICE_MICROS, ["charge", "settle"])
    assert StoredObject.objects.get(key=fetched.key).state == "dead"
    assert StoredObject.objects.count() == 2
    assert_bytes_are_removed()


@pytest.mark.django_db
def test_a_submit_answer_that_comes_after_the_burial_is_kept_on_its_attempt_and_brings_no_video(
    owner: Owner, simulator: Any
) -> None:
    """The answer was so late that a person had closed the task; the deletion had been asked for before."""
    document = makers.order(prompt=f"a cat{MADE[:-1]} lookup=never]")
    makers.post(owner, document)
    sending = begin_sending(document["id"])
    answer, response = send(sending)
    mark(document["id"])
    makers.let_leases_run_out()
    dispatch.dispatch_due()
    assert makers.task_of(owner, document["id"]).state == "unknown"
    assert not Claim.objects.filter(state="buried").exists()
    task_id = makers.task_of(owner, document["id"]).pk
    desk.fail_and_refund(task_id=task_id, actor="support", reason="asked for it", now=timezone.now())
    assert_gone_for_ever(owner, document, FULL, ["charge", "refund"])
    dispatch.record_answer(sending=sending, answer=answer, response=response)
    (attempt,) = Attempt.objects.all()
    assert (attempt.outcome, attempt.late_check_at) == ("accepted", None)
    assert attempt.upstream_id == simulator.jobs()[0]["request_id"]
    makers.work()
    assert_gone_for_ever(owner, document, FULL, ["charge", "refund"])
    assert StoredObject.objects.count() == 0
    assert (simulator.count(), simulator.posts()) == (1, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("prompt", "balance", "kinds"), ENDS)
def test_polls_call_backs_workers_and_the_sweeper_at_once_bury_a_marked_task_once(
    owner: Owner, simulator: Any, prompt: str, balance: int, kinds: list[str]
) -> None:
    document = running(owner, prompt)
    mark(document["id"])

    def call() -> Any:
        return call_back(owner, simulator, document["id"]).status_code

    for _ in range(3):
        makers.make_due()
        outcomes = race_to_success(
            call,
            call,
            polling.poll_due,
            polling.poll_due,
            results.store_due,
            results.store_due,
            lambda: sweeping.sweep(now=timezone.now()),
            lambda: unknowns.check_unknown_due() + late.follow_late_jobs(),
        )
        assert outcomes[:2] == [200, 200]
    work()
    assert_gone_for_ever(owner, document, balance, kinds)
    assert simulator.count() == 1
    assert_bytes_are_removed()
