"""kill -9 between any two steps: afterwards the same end state, one job and one charge."""

import json
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from billing.models import Charge, Resolution, Transfer
from files.models import StoredFile, StoredObject
from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.processes import environment_of_this_test
from tests.crash.dying_worker import POINTS
from tests.simulator_process import SimulatorProcess
from tombstones.models import Claim
from videos.engine import dispatch, polling
from videos.models import Attempt, VideoTask

pytestmark = [pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).resolve().parents[2]
PRICE = makers.PRICE_MICROS
FULL = 100_000_000
DIE_SECONDS = 60.0  # the start of an interpreter and of Django on a busy machine


def kill_at(point: str, step: str = "work", **arguments: Any) -> None:
    """Run a step in a process of its own that must be killed at the point, and must get that far."""
    order = {"point": point, "step": step, "arguments": arguments}
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.dying_worker"],
        cwd=ROOT,
        env=environment_of_this_test(),
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=DIE_SECONDS,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, f"it was not killed at {point!r}: {done.stderr[-3000:]}"


def recover() -> None:
    """What the schedule does once the dead worker's leases have run out."""
    makers.let_leases_run_out()
    makers.work()


@pytest.fixture
def owner(simulator: SimulatorProcess) -> makers.Owner:
    return makers.make_owner()


def order_of(owner: makers.Owner, client_id: str) -> dict[str, Any]:
    return {"owner_id": str(owner.id), "fields": makers.order(id=client_id)}


def assert_completed_once(owner: makers.Owner, simulator: SimulatorProcess, client_id: str) -> None:
    assert makers.task_of(owner, client_id).state == "completed"
    assert (simulator.count(), simulator.posts()) == (1, 1)
    assert (Charge.objects.count(), StoredFile.objects.count()) == (1, 1)
    assert Transfer.objects.filter(kind="settle").count() == 1
    assert StoredObject.objects.filter(state="published").count() == 1
    assert owner.balance_micros == FULL - PRICE
    assert_books_balance()


# --- submit, cancel, delete -------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["submit: claim inserted", "submit: charge inserted"])
def test_a_submit_killed_before_its_commit_left_nothing_and_may_be_repeated(
    owner: makers.Owner, simulator: SimulatorProcess, point: str
) -> None:
    client_id = makers.new_client_id()
    kill_at(point, "submit", **order_of(owner, client_id))
    assert (Claim.objects.count(), VideoTask.objects.count(), Charge.objects.count()) == (0, 0, 0)
    assert owner.balance_micros == FULL
    assert makers.post(owner, makers.order(id=client_id)).status_code == 201
    makers.work()
    assert_completed_once(owner, simulator, client_id)


def test_a_submit_killed_after_its_commit_is_answered_from_its_claim(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id = makers.new_client_id()
    kill_at("submit: committed", "submit", **order_of(owner, client_id))
    for _ in range(5):
        answer = makers.post(owner, makers.order(id=client_id))
        assert (answer.status_code, answer["Idempotent-Replayed"]) == (200, "true")
    makers.work()
    assert_completed_once(owner, simulator, client_id)


def test_a_cancel_killed_half_way_refunds_nothing_and_then_once(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id = makers.submit(owner)
    kill_at("cancel: money moved, state not", "cancel", owner_id=str(owner.id), client_id=client_id)
    assert makers.task_of(owner, client_id).state == "submitting"
    assert owner.balance_micros == FULL - PRICE
    assert owner.api.post(f"/api/videos/{client_id}/cancel").status_code == 200
    assert owner.balance_micros == FULL
    assert simulator.posts() == 0
    assert_books_balance()


@pytest.mark.parametrize(
    ("point", "status", "gone"),
    [("delete: claim buried, task not gone", 204, False), ("delete: committed", 410, True)],
)
def test_a_deletion_killed_is_whole_or_not_at_all(
    owner: makers.Owner, simulator: SimulatorProcess, point: str, status: int, gone: bool
) -> None:
    client_id = makers.submit(owner)
    makers.work()
    kill_at(point, "delete", owner_id=str(owner.id), client_id=client_id)
    assert makers.view(owner, client_id).is_buried is gone
    assert owner.api.delete(f"/api/videos/{client_id}").status_code == status
    assert (VideoTask.objects.count(), StoredFile.objects.count()) == (0, 0)
    assert [stored.state for stored in StoredObject.objects.all()] == ["dead"]
    assert makers.post(owner, makers.order(id=client_id)).status_code == 410
    assert owner.balance_micros == FULL - PRICE
    assert_books_balance()


# --- sending ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [makers.MODEL, makers.BLIND_MODEL])
def test_a_sender_killed_before_the_first_byte_leaves_an_unknown_that_is_never_sent_blindly(
    owner: makers.Owner, simulator: SimulatorProcess, model: str
) -> None:
    client_id = makers.submit(owner, model=model)
    kill_at("send: attempt committed")
    assert [attempt.outcome for attempt in makers.attempts_of(owner, client_id)] == ["inflight"]
    recover()
    assert makers.task_of(owner, client_id).state == "unknown"
    assert simulator.posts() == 0  # it was not sent, but nobody can know that
    makers.age([client_id], first_unclear_at=timedelta(hours=30))
    makers.work()
    task = makers.task_of(owner, client_id)
    assert (task.state, task.error_code) == ("failed", "time_limit")
    assert (simulator.posts(), owner.balance_micros) == (0, FULL)
    assert_books_balance()


@pytest.mark.parametrize("point", ["send: answer not recorded", "send: answer half recorded"])
def test_a_sender_killed_with_the_answer_in_its_hand_is_found_in_the_providers_list(
    owner: makers.Owner, simulator: SimulatorProcess, point: str
) -> None:
    client_id = makers.submit(owner)
    kill_at(point)
    assert simulator.count() == 1
    assert makers.task_of(owner, client_id).state == "submitting"
    recover()
    assert_completed_once(owner, simulator, client_id)


def test_a_job_that_no_contract_can_find_is_refunded_by_policy_and_never_sent_again(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id = makers.submit(owner, model=makers.BLIND_MODEL)
    kill_at("send: answer not recorded")
    recover()
    recover()
    assert makers.task_of(owner, client_id).state == "unknown"
    makers.age([client_id], first_unclear_at=timedelta(hours=30))
    kill_at_give_up_leaves_it_unknown(owner, client_id)
    recover()
    assert makers.task_of(owner, client_id).error_code == "time_limit"
    assert (simulator.count(), simulator.posts(), Attempt.objects.count()) == (1, 1, 1)
    assert owner.balance_micros == FULL
    assert_books_balance()


def kill_at_give_up_leaves_it_unknown(owner: makers.Owner, client_id: str) -> None:
    makers.make_due()
    kill_at("give up: evidence noted")
    assert makers.task_of(owner, client_id).state == "unknown"
    assert owner.balance_micros == FULL - PRICE


def test_a_sender_killed_after_the_answer_was_recorded_has_lost_nothing(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id = makers.submit(owner)
    kill_at("send: answer recorded")
    assert makers.task_of(owner, client_id).state == "processing"
    recover()
    assert_completed_once(owner, simulator, client_id)


# --- polling and storing ----------------------------------------------------------------------------


def start(owner: makers.Owner, **fields: Any) -> str:
    client_id = makers.submit(owner, **fields)
    dispatch.dispatch_due()
    assert makers.task_of(owner, client_id).state == "processing"
    makers.make_due()
    return client_id


@pytest.mark.parametrize("point", ["poll: reading not recorded", "poll: storing begun"])
def test_a_poller_killed_round_a_reading_is_followed_by_the_next(
    owner: makers.Owner, simulator: SimulatorProcess, point: str
) -> None:
    client_id = start(owner)
    kill_at(point)
    assert makers.task_of(owner, client_id).state == "processing"
    recover()
    assert_completed_once(owner, simulator, client_id)


def test_a_worker_killed_between_refund_and_state_refunds_once(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id = start(owner, prompt="a cat [sim: fail='no luck']")
    makers.make_due()
    kill_at("refund: money moved, state not")
    assert (Resolution.objects.count(), owner.balance_micros) == (0, FULL - PRICE)
    recover()
    assert makers.task_of(owner, client_id).state == "failed"
    assert Transfer.objects.filter(kind="refund").count() == 1
    assert (owner.balance_micros, simulator.count()) == (FULL, 1)
    assert_books_balance()


@pytest.mark.parametrize(
    ("point", "left_pending"),
    [
        ("store: key reserved", 1),
        ("store: bytes stored", 1),
        ("store: file published, money not settled", 1),
        ("store: settled, state not", 1),
    ],
)
def test_a_worker_killed_while_storing_stores_again_under_a_fresh_key_and_settles_once(
    owner: makers.Owner, simulator: SimulatorProcess, point: str, left_pending: int
) -> None:
    client_id = start(owner)
    polling.poll_due()
    makers.make_due()
    kill_at(point)
    assert (Resolution.objects.count(), StoredFile.objects.count()) == (0, 0)
    assert StoredObject.objects.filter(state="pending").count() == left_pending
    recover()
    assert_completed_once(owner, simulator, client_id)
    assert StoredObject.objects.filter(state="pending").count() == left_pending  # for housekeeping


def test_a_worker_killed_after_the_video_was_published_has_nothing_left_to_do(
    owner: makers.Owner, simulator: SimulatorProcess
) -> None:
    client_id = start(owner)
    polling.poll_due()
    makers.make_due()
    kill_at("store: committed")
    assert makers.task_of(owner, client_id).state == "completed"
    recover()
    assert_completed_once(owner, simulator, client_id)


def test_every_point_is_used_by_a_test() -> None:
    story = Path(__file__).read_text()
    assert [point for point in POINTS if f'"{point}"' not in story] == []
