"""DELETE /api/videos/{id}: only what has ended, for ever, and the money stays as it is."""

from typing import Any

import pytest

from billing.models import Charge, Transfer
from files.models import StoredFile, StoredObject
from tests import makers
from tests.api.answers import assert_problem, charged, nothing_changes
from tests.makers import Owner
from tombstones.models import Claim
from videos.models import Attempt, AttemptPayload, Payload, TaskEvent, VideoTask

pytestmark = pytest.mark.django_db


def delete(owner: Owner, client_id: str) -> Any:
    return owner.api.delete(f"/api/videos/{client_id}")


def test_a_completed_task_goes_with_its_words_and_result_and_the_records_stay(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    makers.work()
    transfers = list(Transfer.objects.order_by("id").values())
    answer = delete(owner, client_id)
    assert (answer.status_code, answer.content, answer["Cache-Control"]) == (204, b"", "no-store")
    for erased in (VideoTask, Payload, AttemptPayload, StoredFile):
        assert erased.objects.count() == 0, erased
    assert StoredObject.objects.get().state == "dead"
    claim = Claim.objects.get()
    assert (claim.state, claim.reason) == ("buried", "task_deleted")
    assert (Charge.objects.count(), Attempt.objects.count()) == (1, 1)
    assert TaskEvent.objects.count() == 3
    assert list(Transfer.objects.order_by("id").values()) == transfers
    assert owner.balance_micros == 95_840_000


@pytest.mark.parametrize(
    ("prompt", "state", "refunded"),
    [("a cat", "settled", "0.000000"), ('a [sim: fail="no"]', "refunded", "4.160000")],
)
def test_deleting_again_is_410_with_the_money_of_the_first_time(
    owner: Owner, simulator: Any, prompt: str, state: str, refunded: str
):
    client_id = makers.submit(owner, prompt=prompt)
    makers.work()
    assert delete(owner, client_id).status_code == 204
    with nothing_changes():
        document = assert_problem(delete(owner, client_id), 410, "deleted", id=client_id)
    assert document["charge"] == charged(owner, "4.160000", state=state, refunded=refunded)


def test_a_remembered_shortage_can_be_deleted_and_its_id_stays_spent():
    poor = makers.make_owner(balance="0")
    order = makers.order()
    assert makers.post(poor, order).status_code == 402
    assert delete(poor, order["id"]).status_code == 204
    makers.top_up(poor.user, "100")
    document = assert_problem(makers.post(poor, order), 410, "deleted")
    assert "nothing had been charged" in document["detail"]
    assert poor.balance_micros == 100_000_000


@pytest.mark.parametrize(
    ("state", "fields"),
    [
        ("submitting", {}),
        ("processing", {"prompt": "a [sim: run_forever]"}),
        ("unknown", {"model": makers.BLIND_MODEL, "prompt": "a [sim: drop_after_accept]"}),
    ],
)
def test_an_unfinished_task_is_kept_as_the_proof_for_the_money(
    owner: Owner, simulator: Any, state: str, fields: dict[str, str]
):
    client_id = makers.submit(owner, **fields)
    if state != "submitting":
        makers.work(2)
    with nothing_changes():
        document = assert_problem(delete(owner, client_id), 409, "not_deletable", id=client_id)
    assert document["task"]["state"] == state
    assert document["charge"] == charged(owner, "4.160000")
    assert "the proof for your 4.16" in document["detail"]
    assert makers.get(owner, client_id).status_code == 200


def test_an_unseen_foreign_or_malformed_id_is_404(owner: Owner, simulator: Any):
    stranger = makers.make_owner()
    foreign = makers.submit(stranger)
    makers.work()
    with nothing_changes():
        for client_id in (foreign, "never-sent-1", "short"):
            assert_problem(delete(owner, client_id), 404, "not_received")
    assert makers.get(stranger, foreign).status_code == 200


def test_an_abandoned_id_is_410_abandoned(owner: Owner):
    owner.api.post("/api/videos/a-fenced-id/abandon")
    with nothing_changes():
        assert_problem(delete(owner, "a-fenced-id"), 410, "abandoned")
