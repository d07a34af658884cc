"""POST /api/videos/{id}/abandon: makes "not charged" true, or says that the order did arrive."""

from typing import Any

import pytest

from tests import makers
from tests.api.answers import NOTHING_CHARGED, assert_problem, charged, nothing_changes
from tests.makers import Owner
from tombstones.models import Claim

pytestmark = pytest.mark.django_db


def abandon(owner: Owner, client_id: str) -> Any:
    return owner.api.post(f"/api/videos/{client_id}/abandon")


def test_an_unseen_id_is_fenced_and_nothing_was_charged(owner: Owner):
    answer = abandon(owner, "never-sent-1")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    document = answer.json()
    assert (document["id"], document["code"]) == ("never-sent-1", "abandoned")
    assert document["charge"] == NOTHING_CHARGED
    assert document["message"]["text"] == (
        "This request was not accepted and will not be accepted any more; nothing was charged."
    )
    claim = Claim.objects.get()
    assert (claim.state, claim.reason, claim.owner_id) == ("buried", "abandoned", owner.id)


def test_fencing_again_is_the_same(owner: Owner):
    first = abandon(owner, "never-sent-1").json()
    with nothing_changes():
        again = abandon(owner, "never-sent-1")
    assert (again.status_code, again.json()) == (200, first)


def test_a_live_task_is_409_with_the_task_and_goes_on(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    with nothing_changes():
        document = assert_problem(abandon(owner, client_id), 409, "not_abandonable", id=client_id)
    assert document["task"] == makers.get(owner, client_id).json()
    assert document["charge"] == charged(owner, "4.160000")
    assert document["message"]["text"] == document["task"]["message"]["text"]
    makers.work()
    assert makers.get(owner, client_id).json()["state"] == "completed"
    assert_problem(abandon(owner, client_id), 409, "not_abandonable")


def test_a_remembered_shortage_is_409_and_says_that_nothing_was_charged():
    poor = makers.make_owner(balance="0")
    order = makers.order()
    makers.post(poor, order)
    document = assert_problem(abandon(poor, order["id"]), 409, "not_abandonable")
    assert document["charge"] == NOTHING_CHARGED


def test_a_deleted_task_is_410_deleted(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    makers.work()
    owner.api.delete(f"/api/videos/{client_id}")
    with nothing_changes():
        document = assert_problem(abandon(owner, client_id), 410, "deleted", id=client_id)
    assert document["charge"] == charged(owner, "4.160000", state="settled")


def test_a_fence_is_the_owners_alone(owner: Owner):
    other = makers.make_owner()
    assert abandon(other, "the-same-id").status_code == 200
    assert makers.post(owner, makers.order(id="the-same-id")).status_code == 201
    assert abandon(owner, "the-same-id").status_code == 409
    assert makers.get(other, "the-same-id").status_code == 410


@pytest.mark.parametrize("client_id", ["short", "x" * 65, "has a space", "urn:uuid:" + "-" * 36])
def test_a_malformed_id_is_refused_and_leaves_no_fence(owner: Owner, client_id: str):
    with nothing_changes():
        assert_problem(abandon(owner, client_id), 400, "invalid", field="id")


def test_a_spelling_of_a_uuid_fences_every_spelling(owner: Owner):
    key = makers.new_client_id()
    assert abandon(owner, key.upper()).json()["id"] == key
    assert_problem(makers.post(owner, makers.order(id=key)), 410, "abandoned")


def test_an_empty_account_can_fence_too():
    newcomer = makers.make_owner(balance="0")
    assert abandon(newcomer, "never-sent-1").status_code == 200


def test_an_unseen_id_of_a_batch_is_not_fenced(owner: Owner):
    with nothing_changes():
        document = assert_problem(abandon(owner, "b_0123456789"), 400, "invalid", field="id")
    assert "b_" in document["detail"]
