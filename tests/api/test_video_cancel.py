"""POST /api/videos/{id}/cancel: at once while nothing was sent, else by the provider's word."""

from typing import Any

import pytest

from billing.models import Transfer
from tests import makers
from tests.api.answers import assert_problem, charged, nothing_changes
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def cancel(owner: Owner, client_id: str) -> Any:
    return owner.api.post(f"/api/videos/{client_id}/cancel")


def test_a_task_that_was_not_sent_is_cancelled_and_refunded_at_once(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    answer = cancel(owner, client_id)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    task = answer.json()
    assert (task["state"], task["error"]["code"]) == ("failed", "cancelled")
    assert task["charge"] == charged(owner, "4.160000", state="refunded", refunded="4.160000")
    assert owner.balance_micros == 100_000_000
    makers.work()
    assert simulator.count() == 0
    with nothing_changes():
        assert cancel(owner, client_id).json() == task  # again: the same, and no second refund
    assert Transfer.objects.filter(kind="refund").count() == 1


def test_a_running_task_is_asked_to_stop_once(owner: Owner, simulator: Any):
    client_id = makers.submit(owner, prompt="a [sim: run_forever]")
    makers.work(2)
    answer = cancel(owner, client_id)
    assert answer.status_code == 202
    task = answer.json()
    assert (task["state"], task["cancel"]) == ("processing", {"possible": False, "refund": None})
    assert task["charge"] == charged(owner, "4.160000")
    with nothing_changes():
        assert cancel(owner, client_id).status_code == 202


def test_a_task_that_the_provider_stops_is_refunded_in_full(owner: Owner, simulator: Any):
    client_id = makers.submit(owner, prompt="a [sim: run_forever cancel=obey]")
    makers.work(2)
    assert cancel(owner, client_id).status_code == 202
    makers.work(3)
    task = makers.get(owner, client_id).json()
    assert (task["state"], task["error"]["code"]) == ("failed", "cancelled")
    assert task["charge"]["state"] == "refunded"
    assert owner.balance_micros == 100_000_000


@pytest.mark.parametrize("prompt", ["a cat", 'a [sim: fail="no"]'])
def test_a_final_task_is_409_with_its_own_message(owner: Owner, simulator: Any, prompt: str):
    client_id = makers.submit(owner, prompt=prompt)
    makers.work()
    with nothing_changes():
        document = assert_problem(cancel(owner, client_id), 409, "not_cancellable", id=client_id)
    own = makers.get(owner, client_id).json()
    assert document["task"] == own
    assert document["charge"] == own["charge"]
    assert document["detail"] == f"This cannot be cancelled now. {own['message']['text']}"


def test_an_unknown_task_of_a_provider_without_cancellation_is_409(owner: Owner, simulator: Any):
    client_id = makers.submit(owner, model=makers.BLIND_MODEL, prompt="a [sim: drop_after_accept]")
    makers.work(2)
    assert makers.task_of(owner, client_id).state == "unknown"
    with nothing_changes():
        document = assert_problem(cancel(owner, client_id), 409, "not_cancellable")
    assert document["charge"] == charged(owner, "4.160000")


def test_an_unseen_foreign_or_malformed_id_is_404(owner: Owner):
    foreign = makers.submit(makers.make_owner())
    with nothing_changes():
        for client_id in (foreign, "never-sent-1", "short"):
            assert_problem(cancel(owner, client_id), 404, "not_received")


def test_a_buried_id_is_410(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    makers.work()
    owner.api.delete(f"/api/videos/{client_id}")
    owner.api.post("/api/videos/a-fenced-id/abandon")
    with nothing_changes():
        assert_problem(cancel(owner, client_id), 410, "deleted")
        assert_problem(cancel(owner, "a-fenced-id"), 410, "abandoned")
