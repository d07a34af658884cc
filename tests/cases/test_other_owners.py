"""C76: what belongs to another user is simply unseen."""

from typing import Any

import pytest
from django.test import Client

from tests import makers
from tests.cases.evidence import changed_tables, rows
from tests.makers import Owner

pytestmark = pytest.mark.django_db
UNSEEN_FILE = "00000000-0000-7000-8000-000000000000"


def without_names(answer: Any) -> tuple[int, Any]:
    """Status and body, but for what names the request."""
    if not answer["Content-Type"].startswith("application/problem"):
        return answer.status_code, answer.content
    body = answer.json()
    body.pop("request_id")
    return answer.status_code, body


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("get", "/api/videos/{id}"),
        ("delete", "/api/videos/{id}"),
        ("post", "/api/videos/{id}/cancel"),
        ("get", "/api/files/{file}/content"),
        ("get", "/api/files/{file}/content?download"),
        ("delete", "/api/files/{file}"),
    ],
)
@pytest.mark.parametrize(
    "prompt", ["a cat", "a cat [sim: run_forever webhook_none]"], ids=["completed", "running"]
)
def test_a_stranger_gets_what_an_unseen_id_gets_and_nothing_is_changed(
    owner: Owner, simulator: Any, verb: str, path: str, prompt: str
) -> None:
    client_id = makers.submit(owner, prompt=prompt)
    makers.work()
    file_id = makers.task_of(owner, client_id).result_file_id or UNSEEN_FILE
    stranger = makers.make_owner()
    before = rows()
    call = getattr(stranger.api, verb)
    foreign = call(path.format(id=client_id, file=file_id))
    unseen = call(path.format(id=makers.new_client_id(), file=UNSEEN_FILE))
    assert foreign.status_code == 404
    assert without_names(foreign) == without_names(unseen)
    assert changed_tables(before) == []


def test_a_stranger_s_lists_hold_nothing_of_it(owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner)
    makers.work()
    stranger = makers.make_owner(balance="0")
    for address in ("/api/videos", "/api/files", "/api/account/transfers", "/api/videos?q=cat"):
        assert stranger.api.get(address).json()["results"] == [], address
    (entry,) = stranger.api.get(f"/api/videos?ids={client_id}").json()["results"]
    assert (entry["code"], entry["charge"]["state"]) == ("not_received", "not_charged")
    assert stranger.api.get("/api/account").json()["balance"] == "0.000000"


@pytest.mark.parametrize("path", ["/videos/{id}/", "/videos/?again={id}"])
def test_a_stranger_s_pages_do_not_show_it(owner: Owner, simulator: Any, path: str) -> None:
    client_id = makers.submit(owner, prompt="a secret cat")
    makers.work()
    browser = Client()
    browser.force_login(makers.make_owner().user)
    before = rows()
    answer = browser.get(path.format(id=client_id))
    assert answer.status_code == 404
    assert b"secret" not in answer.content
    for action in ("cancel", "delete"):
        assert browser.post(f"/videos/{client_id}/{action}", {"confirmed": "yes"}).status_code == 404
    assert changed_tables(before) == []
    assert b"secret" not in browser.get("/videos/").content


def test_a_stranger_s_abandon_fences_only_the_stranger_s_own_id(owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner)
    stranger = makers.make_owner()
    assert stranger.api.post(f"/api/videos/{client_id}/abandon").status_code == 200
    assert makers.get(stranger, client_id).status_code == 410
    makers.work()
    assert makers.get(owner, client_id).json()["state"] == "completed"


def test_a_stranger_s_own_request_under_the_same_id_is_a_task_of_its_own(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt="mine")
    stranger = makers.make_owner()
    answer = makers.post(stranger, makers.order(id=client_id, prompt="somebody else's"))
    assert (answer.status_code, answer.json()["prompt"]) == (201, "somebody else's")
    makers.work()
    assert makers.get(owner, client_id).json()["prompt"] == "mine"
    assert simulator.count() == 2


@pytest.mark.parametrize("path", ["/api/videos", "/api/videos/{id}", "/api/account", "/api/files"])
def test_nobody_gets_nothing(owner: Owner, simulator: Any, path: str) -> None:
    client_id = makers.submit(owner)
    assert Client().get(path.format(id=client_id)).status_code == 401
