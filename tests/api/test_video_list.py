"""GET /api/videos: the list, and one entry for each id asked for."""

import base64
from typing import Any

import pytest

from tests import makers
from tests.api.answers import NOTHING_CHARGED, assert_problem, charged
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def cursor(text: str) -> str:
    """A cursor that we did not make, in the form of one that we did."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def listed(owner: Owner, **query: Any) -> list[str]:
    answer = owner.api.get("/api/videos", query)
    assert answer.status_code == 200, answer.content
    assert answer["Cache-Control"] == "no-store"
    return [task["id"] for task in answer.json()["results"]]


def test_c09_a_task_is_listed_at_once(owner: Owner):
    assert listed(owner) == []
    posted = makers.post(owner, makers.order()).json()
    answer = owner.api.get("/api/videos").json()
    assert answer == {"results": [posted], "next_cursor": None}


def test_the_newest_is_first_and_finished_ones_are_included(owner: Owner, simulator: Any):
    finished = makers.submit(owner)
    makers.work()
    waiting = makers.submit(owner)
    assert listed(owner) == [waiting, finished]


def test_a_stranger_sees_nothing(owner: Owner):
    makers.submit(owner)
    assert listed(makers.make_owner()) == []


def test_a_deleted_task_is_not_listed(owner: Owner, simulator: Any):
    kept, gone = makers.submit(owner), makers.submit(owner)
    makers.work()
    owner.api.delete(f"/api/videos/{gone}")
    assert listed(owner) == [kept]


def test_the_list_is_filtered_by_state_model_and_words(owner: Owner, simulator: Any):
    ready = makers.submit(owner, prompt="A Red Cat")
    failed = makers.submit(owner, prompt='a red dog [sim: fail="no"]')
    makers.work()
    waiting = makers.submit(owner, model="veo3.1-fast", prompt="a blue cat, 100% _wool_")
    assert listed(owner, state="all") == [waiting, failed, ready]
    assert listed(owner, state="running") == [waiting]
    assert listed(owner, state="ready") == [ready]
    assert listed(owner, state="completed") == [ready]
    assert listed(owner, state="failed") == [failed]
    assert listed(owner, state="unknown") == []
    assert listed(owner, model="veo3.1") == [failed, ready]
    assert listed(owner, model="veo3.1-fast") == [waiting]
    assert listed(owner, model="no-such-model") == []
    assert listed(owner, q="red") == [failed, ready]
    assert listed(owner, q="CAT") == [waiting, ready]
    assert listed(owner, q="100%") == [waiting]
    assert listed(owner, q="%") == [waiting]
    assert listed(owner, q="_wool_") == [waiting]
    assert listed(owner, q="red", state="ready") == [ready]


@pytest.mark.parametrize("query", [{"q": "a\x00b"}, {"model": "a\x00b"}, {"q": b"\xff\xfe"}], ids=str)
def test_control_characters_in_a_filter_find_nothing_and_break_nothing(owner: Owner, query: dict):
    makers.submit(owner)
    assert listed(owner, **query) == []


def test_pages_follow_each_other_without_gaps_or_repeats(owner: Owner):
    ids = [makers.submit(owner) for _ in range(7)]
    seen: list[str] = []
    following, pages = "", 0
    while following is not None:
        answer = owner.api.get("/api/videos", {"limit": "2", "cursor": following}).json()
        seen += [task["id"] for task in answer["results"]]
        following, pages = answer["next_cursor"], pages + 1
        if pages == 1:
            newer = makers.submit(owner)  # does not shift the pages that follow
    assert (seen, pages) == (ids[::-1], 4)
    assert listed(owner)[0] == newer


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"state": "done"}, "state"),
        ({"state": "COMPLETED"}, "state"),
        ({"limit": "0"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"limit": "1.5"}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"limit": "00000199999"}, "limit"),
        ({"limit": "9" * 5000}, "limit"),
        ({"limit": "000001" + "9" * 5000}, "limit"),
        ({"cursor": "garbage"}, "cursor"),
        ({"cursor": "é"}, "cursor"),
        ({"cursor": "AAAA"}, "cursor"),
        ({"cursor": cursor("2026-01-01T00:00:00 " + "a" * 32)}, "cursor"),  # no time zone
        ({"cursor": cursor("0001-01-01T00:00:00+23:59 " + "a" * 32)}, "cursor"),  # before the first year
        ({"cursor": cursor("2026-01-01T00:00:00+00:00 " + "g" * 32)}, "cursor"),
    ],
    ids=str,
)
def test_a_bad_filter_is_refused_by_name(owner: Owner, query: dict[str, str], field: str):
    assert_problem(owner.api.get("/api/videos", query), 400, "invalid", field=field)


def test_a_page_costs_the_same_however_long_it_is(owner: Owner, django_assert_num_queries: Any):
    for _ in range(5):
        makers.submit(owner)
    owner.api.get("/api/videos")
    with django_assert_num_queries(2):  # the token, the page
        assert len(owner.api.get("/api/videos").json()["results"]) == 5


def by_ids(owner: Owner, *ids: str) -> list[dict[str, Any]]:
    answer = owner.api.get("/api/videos", {"ids": ",".join(ids)})
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    entries: list[dict[str, Any]] = answer.json()["results"]
    return entries


def test_each_id_asked_for_has_one_entry_in_the_order_asked(owner: Owner, simulator: Any):
    stranger = makers.make_owner()
    live, deleted = makers.submit(owner), makers.submit(owner)
    foreign = makers.submit(stranger)
    makers.work()
    owner.api.delete(f"/api/videos/{deleted}")
    owner.api.post("/api/videos/a-fenced-id/abandon")
    entries = by_ids(owner, "a-fenced-id", "never-sent-1", live, deleted, foreign, "short", live)
    assert [entry["id"] for entry in entries] == [
        *("a-fenced-id", "never-sent-1", live, deleted, foreign, "short")
    ]
    fenced, unseen, task, gone, strange, malformed = entries
    assert task == makers.get(owner, live).json()
    assert [entry["code"] for entry in (fenced, unseen, gone, strange, malformed)] == [
        *("abandoned", "not_received", "deleted", "not_received", "not_received")
    ]
    assert gone["charge"] == charged(owner, "4.160000", state="settled")
    for entry in (fenced, unseen, strange, malformed):
        assert entry["charge"] == NOTHING_CHARGED
    assert {**unseen, "id": ""} == {**strange, "id": ""}
    assert gone["message"]["code"] == "deleted"


def test_uuids_asked_for_in_any_spelling_are_found(owner: Owner):
    client_id = makers.submit(owner)
    (entry,) = by_ids(owner, client_id.upper())
    assert entry["id"] == client_id


def test_a_hundred_ids_are_answered_in_one_statement(owner: Owner, django_assert_num_queries: Any):
    ids = [makers.submit(owner) for _ in range(3)] + [f"never-sent-{number}" for number in range(97)]
    by_ids(owner, *ids)
    with django_assert_num_queries(2):  # the token, the tasks
        assert len(by_ids(owner, *ids)) == 100


def test_more_than_a_hundred_ids_are_refused(owner: Owner):
    ids = ",".join(f"never-sent-{number}" for number in range(101))
    document = assert_problem(owner.api.get("/api/videos", {"ids": ids}), 400, "invalid", field="ids")
    assert "up to 100 ids" in document["detail"]


@pytest.mark.parametrize("ids", ["", ",", ",,,"])
def test_no_ids_are_no_entries(owner: Owner, ids: str):
    makers.submit(owner)
    assert owner.api.get("/api/videos", {"ids": ids}).json()["results"] == []
