"""C56: 410 for what was deleted, 404 for what is not the owner's, for ever."""

from typing import Any

import pytest

from files.models import StoredFile
from tests import makers
from tests.cases.evidence import changed_tables, kinds_of, rows
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def completed(owner: Owner) -> str:
    client_id = makers.submit(owner)
    makers.work()
    assert makers.represent(owner, client_id)["state"] == "completed"
    return client_id


@pytest.mark.parametrize("side", ["task", "file"])
def test_a_deleted_video_is_gone_and_an_unseen_id_and_a_stranger_s_deleted_id_are_not_found(
    owner: Owner, simulator: Any, side: str
) -> None:
    client_id = completed(owner)
    file_id = makers.get(owner, client_id).json()["result"]["file"]
    address = f"/api/videos/{client_id}" if side == "task" else f"/api/files/{file_id}"
    assert owner.api.delete(address).status_code == 204
    gone = makers.get(owner, client_id)
    assert (gone.status_code, gone.json()["code"]) == (410, "deleted")
    assert gone["Cache-Control"] == "no-store"
    assert gone.json()["charge"] == {
        "state": "settled",
        "amount": "4.160000",
        "refunded": "0.000000",
        "currency": "USDC",
    }
    unseen = makers.get(owner, makers.new_client_id())
    assert (unseen.status_code, unseen.json()["code"]) == (404, "not_received")
    stranger = makers.make_owner()
    foreign = makers.get(stranger, client_id)
    assert (foreign.status_code, foreign.json()["code"]) == (404, "not_received")
    assert StoredFile.objects.count() == 0
    assert kinds_of(owner, client_id) == ["charge", "settle"]


def test_a_deleted_id_is_never_accepted_again_and_never_charged(owner: Owner, simulator: Any) -> None:
    document = makers.order()
    makers.post(owner, document)
    makers.work()
    owner.api.delete(f"/api/videos/{document['id']}")
    before, balance = rows(), owner.balance_micros
    for body in (document, {**document, "prompt": "another"}):
        answer = makers.post(owner, body)
        assert (answer.status_code, answer.json()["code"]) == (410, "deleted")
    for verb, address in (("get", ""), ("post", "/cancel"), ("post", "/abandon")):
        assert getattr(owner.api, verb)(f"/api/videos/{document['id']}{address}").status_code == 410, address
    assert owner.api.delete(f"/api/videos/{document['id']}").status_code == 410
    entry = owner.api.get(f"/api/videos?ids={document['id']}").json()["results"][0]
    assert (entry["code"], entry["charge"]["state"]) == ("deleted", "settled")
    assert owner.api.get("/api/videos").json()["results"] == []
    makers.work()
    assert changed_tables(before) == []
    assert (owner.balance_micros, simulator.count()) == (balance, 1)


def test_an_abandoned_id_is_gone_and_was_never_charged(owner: Owner, simulator: Any) -> None:
    document = makers.order()
    assert owner.api.post(f"/api/videos/{document['id']}/abandon").status_code == 200
    for answer in (makers.get(owner, document["id"]), makers.post(owner, document)):
        assert (answer.status_code, answer.json()["code"]) == (410, "abandoned")
        assert answer.json()["charge"]["state"] == "not_charged"
    assert (owner.balance_micros, simulator.posts()) == (100_000_000, 0)


@pytest.mark.parametrize("prompt", ["a cat [sim: run_forever]", "a cat [sim: drop_before_accept]"])
def test_what_is_not_final_is_kept_and_says_why(owner: Owner, simulator: Any, prompt: str) -> None:
    client_id = makers.submit(owner, prompt=prompt)
    makers.work_once()
    before = rows()
    answer = owner.api.delete(f"/api/videos/{client_id}")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_deletable")
    assert "4.16" in answer.json()["detail"]
    assert changed_tables(before) == []
