"""What is open to anybody: the description of the API, and whether the service is up."""

import re

import pytest
from django.test import Client

from tests.api.answers import assert_problem
from tests.makers import Owner

pytestmark = pytest.mark.django_db

OPERATIONS = {
    *("submit_video", "list_videos", "get_video", "delete_video", "abandon_video", "cancel_video"),
    *("list_models", "get_account", "list_transfers", "list_files", "delete_file", "get_file_content"),
}


def test_the_schema_describes_every_call():
    answer = Client().get("/api/schema", headers={"accept": "application/vnd.oai.openapi+json"})
    assert answer.status_code == 200
    document = answer.json()
    described = {
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
        if isinstance(operation, dict)
    }
    assert described >= OPERATIONS
    assert document["openapi"].startswith("3.")


def test_the_schema_can_be_made_without_a_warning(capfd: pytest.CaptureFixture[str]):
    assert Client().get("/api/schema").status_code == 200
    assert "Warning" not in capfd.readouterr().err


def test_the_documentation_loads_nothing_from_another_host():
    """Neither the page nor the script that starts it names another host."""
    answer = Client().get("/api/docs")
    assert answer.status_code == 200
    page = answer.content.decode()
    loaded = re.findall(r'<(?:link|script|img)[^>]*(?:src|href)="([^"]+)"', page)
    assert len(loaded) >= 4
    for address in loaded:
        assert re.match(r"/\w", address), address
        answer = Client().get(address)
        assert answer.status_code == 200, address
        assert b"".join(answer.streaming_content if answer.streaming else [answer.content])
    starting = Client().get("/api/docs?script=").content.decode()
    assert "/api/schema" in starting
    named = re.findall(r"https?://[^\s\"']+", page + starting)
    assert [address for address in named if "//testserver/" not in address] == []


def test_the_service_says_that_it_is_alive_and_ready():
    assert Client().get("/healthz").json() == {"status": "ok"}
    assert Client().get("/readyz").json() == {"status": "ok"}


def test_an_unknown_format_is_refused_in_the_known_one(owner: Owner):
    answer = owner.api.get("/api/account", headers={"accept": "text/csv"})
    assert_problem(answer, 406, "not_acceptable")


@pytest.mark.parametrize("given", ["my-request-0001", "short", "x" * 65, "line\nend-000", "é" * 10])
def test_a_request_has_an_id_that_the_caller_may_choose(given: str):
    answer = Client().get("/api/account", headers={"x-request-id": given})
    document = assert_problem(answer, 401, "not_authenticated")
    assert (document["request_id"] == given) == (given == "my-request-0001")
    assert re.fullmatch(r"[A-Za-z0-9_.:-]{8,64}", document["request_id"])
