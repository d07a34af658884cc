"""The list of videos: groups, filters, older pages, and what it costs the database."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests import makers
from tests.makers import Owner
from tests.pages.conftest import sign_in
from tests.pages.reading import get


def refuse_many(owner: Owner, count: int) -> list[str]:
    """Orders that the balance does not cover: finished at once, without a provider. Oldest first."""
    return [makers.submit(owner, prompt=f"number {number}") for number in range(count)]


def test_running_videos_come_first_and_newest_first_in_each_group(
    client: Client, owner: Owner, simulator: Any
) -> None:
    ready = [makers.submit(owner, prompt=f"ready {number}") for number in range(2)]
    makers.work()
    running = [makers.submit(owner, prompt=f"running {number}") for number in range(2)]

    page = get(client, "/videos/")

    assert page.tasks == [*reversed(running), *reversed(ready)]
    assert "Running 2" in page.text


def test_each_filter_shows_its_own_videos_alone(client: Client, owner: Owner, simulator: Any) -> None:
    ready = makers.submit(owner, prompt="a red kite")
    failed = makers.submit(owner, prompt='a blue kite [sim: fail="internal error"]')
    makers.work()
    running = makers.submit(owner, prompt="a green kite")

    shown = {state: get(client, f"/videos/?state={state}").tasks for state in ("running", "ready", "failed")}

    assert shown == {"running": [running], "ready": [ready], "failed": [failed]}
    assert get(client, "/videos/?state=nonsense").tasks == [running, failed, ready]


def test_search_finds_words_of_the_prompt_and_an_empty_result_says_so(client: Client, owner: Owner) -> None:
    found = makers.submit(owner, prompt="夜晚的城市航拍")
    makers.submit(owner, prompt="a quiet lake")

    assert get(client, "/videos/?q=城市").tasks == [found]
    nothing = get(client, "/videos/?q=volcano")
    assert nothing.tasks == []
    assert "No video matches these filters." in nothing.text
    assert get(client, "/videos/?q=%00").status == 200


def test_an_empty_list_offers_example_prompts(client: Client) -> None:
    page = get(client, "/videos/")

    assert "No videos yet. A short sentence is enough to start." in page.text
    assert len([link for link in page.links if link.startswith("?prompt=")]) == 3


def test_older_pages_show_every_video_once(db: None) -> None:
    owner = makers.make_owner(balance="0")
    client = sign_in(owner)
    made = refuse_many(owner, 53)

    shown, path = [], "/videos/?q=number"
    while path:
        page = get(client, path)
        shown.append(page.tasks)
        older = [link for link in page.links if "cursor=" in link]
        path = f"/videos/{older[0].partition('#')[0]}" if older else ""

    assert [len(tasks) for tasks in shown] == [24, 24, 5]
    assert [task for tasks in shown for task in tasks] == made[::-1]


def test_a_mangled_cursor_shows_the_first_page(client: Client, owner: Owner) -> None:
    only = makers.submit(owner, prompt="one")
    makers.submit(makers.make_owner(), prompt="of somebody else")

    assert get(client, "/videos/?cursor=%00nonsense").status == 200
    assert get(client, "/videos/").tasks == [only]


@pytest.mark.parametrize("path", ["/videos/", "/videos/?state=ready", "/billing/"])
def test_twenty_videos_cost_as_many_queries_as_one(
    client: Client, owner: Owner, simulator: Any, path: str
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        return len(captured)

    makers.submit(owner, prompt="the first")
    makers.work()
    makers.submit(owner, prompt="the first that runs")
    queries()  # whatever is read once for a session
    few = queries()
    for number in range(10):
        makers.submit(owner, prompt=f"ready {number}")
    makers.work(rounds=6)
    for number in range(9):
        makers.submit(owner, prompt=f"running {number}", seconds=4)

    assert len(get(client, "/videos/").tasks) == 21
    assert queries() == few <= 12


def test_amounts_and_states_of_a_card_are_those_of_the_api(
    client: Client, owner: Owner, simulator: Any
) -> None:
    ready = makers.submit(owner, prompt="ready")
    failed = makers.submit(owner, prompt='failed [sim: fail="internal error"]')
    makers.work()
    text = get(client, "/videos/").text

    for client_id in (ready, failed):
        task = makers.get(owner, client_id).json()
        assert task["message"]["text"].replace("\xa0", " ") in text
        words = f"{task['chips']['video']['word']} {task['chips']['money']['word']}".replace("\xa0", " ")
        assert words in text


def test_times_are_read_with_their_zone_and_never_in_their_machine_form(client: Client, owner: Owner) -> None:
    client_id = makers.submit(owner, prompt="timely")

    for path in ("/videos/", f"/videos/{client_id}/", "/billing/", "/account/"):
        page = get(client, path)
        assert re.search(r"\d{4}-\d\d-\d\dT\d\d", page.text) is None
        if path != "/account/":
            assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC", page.text)
            assert re.search(r'datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d', page.source)


@pytest.mark.parametrize("name", ["model", "q", "state", "cursor", "again", "prompt"])
def test_a_zero_character_in_the_address_breaks_nothing(client: Client, owner: Owner, name: str) -> None:
    answer = client.get("/videos/", {name: "a\x00b"})
    assert answer.status_code == (404 if name == "again" else 200)
