"""What the browser does when answers are lost: it finds out, says what it knows, and never pays twice."""

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.e2e.conftest import Person, Visit, jobs_of, unique
from tests.e2e.test_journey import card, order
from tests.product_process import ProductProcess

CUT = r"net::ERR_FAILED|net::ERR_INTERNET_DISCONNECTED"
NOT_RECEIVED = r"status of 404"
REFUSED = r"status of 410"


def is_submission(route: Route) -> bool:
    return route.request.method == "POST" and route.request.url.endswith("/api/videos")


def watch_submissions(page: Page, answer: Callable[[Route, int], Any]) -> list[str]:
    """Put `answer` in the way of every submission; the ids that were sent."""
    ids: list[str] = []

    def stand_between(route: Route) -> None:
        if not is_submission(route):
            route.continue_()
            return
        ids.append(json.loads(route.request.post_data or "{}")["id"])
        answer(route, len(ids))

    page.route("**/api/videos", stand_between)
    return ids


def test_a_lost_answer_is_confirmed_by_a_read_and_charged_once(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Answer lost")
    one = visit()
    one.tolerate(CUT)
    page = one.sign_in()

    def lose(route: Route, count: int) -> None:
        route.fetch()  # it reached the server, and its answer is thrown away
        route.abort()

    ids = watch_submissions(page, lose)
    page.fill("#prompt", f"{prompt} [sim: seconds=3]")
    page.click("#generate")

    expect(card(page, prompt).locator('[data-chip="video"]')).to_have_text("Ready")
    expect(page.locator(".pending-request")).to_have_count(0)
    assert len(ids) == 1
    assert (person.charges(), jobs_of(product, prompt)) == (["4.160000"], 1)


def test_a_submission_that_is_lost_on_the_way_is_sent_again_under_the_same_id(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Lost on the way")
    one = visit()
    one.tolerate(f"{CUT}|{NOT_RECEIVED}")
    page = one.sign_in()
    ids = watch_submissions(page, lambda route, count: route.abort() if count == 1 else route.continue_())
    page.fill("#prompt", prompt)
    page.click("#generate")

    expect(page.locator(".pending-request")).to_contain_text(
        "It had not arrived, so the same request is being sent again (1 of 3); you will not be charged twice."
    )
    expect(card(page, prompt).locator('[data-chip="video"]')).to_have_text("Ready")
    assert len(ids) == 2 and len(set(ids)) == 1
    assert (person.charges(), jobs_of(product, prompt)) == (["4.160000"], 1)


def test_a_submission_that_never_arrives_is_fenced_off_and_then_called_not_charged(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Never arrives")
    one = visit()
    one.tolerate(f"{CUT}|{NOT_RECEIVED}")
    page = one.sign_in()
    ids = watch_submissions(page, lambda route, count: route.abort())
    page.fill("#prompt", prompt)
    page.click("#generate")

    note = page.locator(".pending-request")
    expect(note).to_contain_text("you will not be charged twice")
    expect(note).to_contain_text(
        "The server did not accept it and will not any more; nothing was charged, and you can start anew.",
        timeout=40_000,
    )
    assert len(ids) == 4 and len(set(ids)) == 1  # the first, and three more
    late = person.api("POST", "/api/videos", {"id": ids[0], "model": "veo3.1", "prompt": prompt})
    assert (late.status, late.json["code"]) == (410, "abandoned")
    assert (person.charges(), person.videos(), jobs_of(product, prompt)) == ([], [], 0)

    page.unroute("**/api/videos")
    note.get_by_role("button", name="Use again").click()
    expect(page.locator("#prompt")).to_have_value(prompt)
    page.click("#generate")

    expect(card(page, prompt).locator('[data-chip="video"]')).to_have_text("Ready")
    assert (person.charges(), jobs_of(product, prompt)) == (["4.160000"], 1)


def test_a_page_closed_before_the_answer_finds_its_request_when_it_is_opened_again(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Closed too early")
    one = visit()
    one.tolerate(CUT)
    page = one.sign_in()
    watch_submissions(page, lambda route, count: None)  # it hangs: nothing has reached the server
    page.fill("#prompt", prompt)
    page.click("#generate")
    expect(page.locator("#generate")).to_have_text("Sending…")
    page.close()
    assert person.videos() == []

    again = one.tab()
    one.tolerate(NOT_RECEIVED)

    expect(card(again, prompt).locator('[data-chip="video"]')).to_have_text("Ready")
    assert (person.charges(), jobs_of(product, prompt)) == (["4.160000"], 1)


def test_a_video_deleted_elsewhere_is_said_so_in_this_tab(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Deleted elsewhere")
    page = visit().sign_in()

    deleted: list[str] = []

    def delete_before_the_first_read(route: Route) -> None:
        for video in person.videos():
            person.wait_until(video["id"], "completed")
            assert person.api("DELETE", f"/api/videos/{video['id']}").status == 204
            deleted.append(video["id"])
        route.continue_()

    page.route(re.compile(r"/api/videos\?ids="), delete_before_the_first_read)
    shown = order(page, prompt)

    expect(shown.locator(".message")).to_contain_text("it will not be made or charged again")
    expect(shown.locator('[data-chip="video"]')).to_have_text("Deleted")
    assert len(deleted) == 1
    assert (person.videos(), person.charges(), jobs_of(product, prompt)) == ([], ["4.160000"], 1)


def test_offline_nothing_is_sent_and_back_online_the_states_are_read(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    running, prompt = unique("Goes on alone"), unique("Not sent")
    one = visit()
    one.tolerate(CUT)
    page = one.sign_in()
    order(page, f"{running} [sim: seconds=3]")

    one.context.set_offline(True)
    expect(page.locator("#notices")).to_contain_text(
        "You are offline; submitted videos go on without this page"
    )
    page.fill("#prompt", prompt)
    page.click("#generate")
    expect(page.locator("#composer-alert")).to_contain_text("nothing new is sent or charged")
    one.context.set_offline(False)

    expect(card(page, running).locator('[data-chip="video"]')).to_have_text("Ready")
    expect(page.locator("#prompt")).to_have_value(prompt)
    assert (len(person.videos()), jobs_of(product, prompt)) == (1, 0)
