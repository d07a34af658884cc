"""QUARANTINE=true, after a backup was restored: nobody is told "not received" by a memory with holes."""

from datetime import timedelta
from typing import Any

import pytest

from tests import makers
from tests.api.answers import NOTHING_CHARGED, assert_problem, charged, nothing_changes
from tests.makers import Owner

pytestmark = pytest.mark.django_db
UNSEEN = "of-the-lost-tail"


@pytest.fixture
def known(owner: Owner, settings: Any) -> dict[str, Any]:
    """An order from before the restore; quarantine begins after it."""
    document = makers.order()
    assert makers.post(owner, document).status_code == 201
    settings.QUARANTINE = True
    return document


def test_an_order_with_an_unseen_id_is_put_off_and_leaves_nothing(
    owner: Owner, simulator: Any, known: dict[str, Any]
):
    with nothing_changes():
        answer = makers.post(owner, makers.order(id=UNSEEN))
    document = assert_problem(answer, 503, "quarantine")
    assert "charge" not in document or document["charge"] is None
    assert simulator.posts() == 0


def test_nobody_is_told_that_an_unseen_id_was_not_received(owner: Owner, known: dict[str, Any]):
    document = assert_problem(makers.get(owner, UNSEEN), 503, "quarantine")
    assert "not charged" not in document["detail"] and "nothing was charged" not in document["detail"]


def test_an_unseen_id_is_not_fenced(owner: Owner, known: dict[str, Any], settings: Any):
    with nothing_changes():
        answer = owner.api.post(f"/api/videos/{UNSEEN}/abandon")
    assert_problem(answer, 503, "quarantine")
    settings.QUARANTINE = False
    assert makers.post(owner, makers.order(id=UNSEEN)).status_code == 201


def test_a_strangers_id_is_put_off_like_an_unseen_one(known: dict[str, Any]):
    stranger = makers.make_owner()
    assert_problem(makers.get(stranger, known["id"]), 503, "quarantine")
    assert_problem(makers.post(stranger, known), 503, "quarantine")
    assert_problem(stranger.api.post(f"/api/videos/{known['id']}/abandon"), 503, "quarantine")


def test_a_known_id_is_answered_as_ever(owner: Owner, known: dict[str, Any]):
    again = makers.post(owner, known)
    assert (again.status_code, again["Idempotent-Replayed"]) == (200, "true")
    assert makers.get(owner, known["id"]).json()["state"] == "submitting"
    refused = assert_problem(owner.api.post(f"/api/videos/{known['id']}/abandon"), 409, "not_abandonable")
    assert refused["charge"] == charged(owner, "4.160000")
    assert_problem(makers.post(owner, {**known, "prompt": "another"}), 422, "id_reused")


def test_a_deleted_id_stays_gone_and_fencing_an_abandoned_one_again_is_the_same(
    owner: Owner, simulator: Any, settings: Any
):
    deleted = makers.submit(owner)
    makers.work()
    assert owner.api.delete(f"/api/videos/{deleted}").status_code == 204
    fenced = owner.api.post("/api/videos/fenced-before/abandon").json()
    settings.QUARANTINE = True
    assert_problem(makers.get(owner, deleted), 410, "deleted")
    again = owner.api.post("/api/videos/fenced-before/abandon")
    assert (again.status_code, again.json()) == (200, fenced)


def test_a_read_of_many_ids_tells_each_unseen_one_apart(owner: Owner, known: dict[str, Any], settings: Any):
    path = f"/api/videos?ids={known['id']},{UNSEEN}"
    first, second = owner.api.get(path).json()["results"]
    assert (first["id"], first["state"]) == (known["id"], "submitting")
    assert (second["id"], second["code"], second["charge"]) == (UNSEEN, "quarantine", None)
    assert second["message"]["code"] == "quarantine"
    settings.QUARANTINE = False
    _, second = owner.api.get(path).json()["results"]
    assert (second["code"], second["charge"]) == ("not_received", NOTHING_CHARGED)


def test_what_waits_is_not_sent_as_it_may_have_been_sent_after_the_backup(
    owner: Owner, simulator: Any, known: dict[str, Any], settings: Any
):
    makers.work()
    assert (simulator.posts(), makers.task_of(owner, known["id"]).state) == (0, "submitting")
    settings.QUARANTINE = False
    makers.work()
    assert (simulator.posts(), makers.task_of(owner, known["id"]).state) == (1, "completed")


def test_an_unknown_task_is_not_given_up_by_a_memory_with_holes(owner: Owner, simulator: Any, settings: Any):
    client_id = makers.submit(owner, model=makers.BLIND_MODEL, prompt="a cat [sim: drop_after_accept]")
    makers.work()
    makers.age([client_id], first_unclear_at=timedelta(days=3))
    settings.QUARANTINE = True
    makers.work()
    assert makers.task_of(owner, client_id).state == "unknown"
    settings.QUARANTINE = False
    makers.work()
    assert makers.task_of(owner, client_id).error_code == "time_limit"


def test_what_runs_is_followed_to_its_end(owner: Owner, simulator: Any, settings: Any):
    client_id = makers.submit(owner)
    makers.make_due()
    makers.work_once()
    settings.QUARANTINE = True
    makers.work()
    assert makers.task_of(owner, client_id).state == "completed"
