"""From the sign-in to a video that plays, as people do it."""

import re
import uuid
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Person, Visit, jobs_of, unique
from tests.product_process import ProductProcess

PLAYS = """async (video) => {
  video.muted = true;
  await video.play();
  const until = performance.now() + 10000;
  while (video.currentTime < 0.3 && performance.now() < until) {
    await new Promise((done) => setTimeout(done, 50));
  }
  video.pause();
  return [video.readyState >= 2, video.currentTime >= 0.3, video.videoWidth > 0];
}"""


def card(page: Page, prompt: str) -> Locator:
    return page.locator("article.video-card", has_text=prompt)


def order(page: Page, prompt: str) -> Locator:
    page.fill("#prompt", prompt)
    page.click("#generate")
    shown = card(page, prompt)
    expect(shown).to_be_visible()
    return shown


def test_a_person_orders_a_video_sees_it_made_plays_it_and_finds_one_charge(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("A paper boat in the rain")
    page = visit().sign_in()
    expect(page.locator("#generate")).to_have_text("Generate · 4.16\xa0USDC")
    page.locator("label", has_text="4 s").click()
    expect(page.locator("#generate")).to_have_text("Generate · 2.08\xa0USDC")
    expect(page.locator("#cost-line")).to_contain_text("balance after 97.92")

    shown = order(page, f"{prompt} [sim: seconds=4]")

    expect(shown.locator('[data-chip="money"]')).to_have_text("Held 2.08")
    expect(shown.locator('[data-chip="video"]')).to_have_text("Making")
    expect(page.locator("#balance")).to_contain_text("97.92 USDC")
    expect(page.locator("#prompt")).to_have_value("")
    expect(shown.locator('[data-chip="video"]')).to_have_text("Ready")
    expect(shown.locator('[data-chip="money"]')).to_have_text("Charged 2.08")
    expect(shown.locator(".message")).to_have_text("Your video is ready; 2.08\xa0USDC was charged.")
    assert shown.locator("video").evaluate(PLAYS) == [True, True, True]

    page.goto(f"{product.url}/billing/")
    expect(page.locator("table.statement .kind")).to_have_text(["Charged for a video", "Money added"])
    expect(page.locator("table.statement")).to_contain_text("−2.08")
    assert person.charges() == ["2.080000"]
    assert (person.balance(), jobs_of(product, prompt)) == ("97.920000", 1)


def test_a_double_click_and_pressing_enter_on_top_is_one_job(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Twice is once")
    page = visit().sign_in()
    page.fill("#prompt", prompt)

    page.dblclick("#generate")
    page.keyboard.press("Control+Enter")

    expect(card(page, prompt).locator('[data-chip="video"]')).to_have_text("Ready")
    assert len(person.videos()) == 1
    assert (person.charges(), jobs_of(product, prompt)) == (["4.160000"], 1)


def test_a_reload_while_it_runs_changes_nothing_and_the_second_tab_shows_the_same(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Still here")
    one = visit()
    page = one.sign_in()
    order(page, f"{prompt} [sim: seconds=6]")

    page.reload()
    other = one.tab()

    for tab in (page, other):
        expect(card(tab, prompt).locator('[data-chip="money"]')).to_have_text("Held 4.16")
    for tab in (page, other):
        expect(card(tab, prompt).locator('[data-chip="video"]')).to_have_text("Ready")
        expect(tab.locator("#balance")).to_contain_text("95.84 USDC")
    assert (person.charges(), jobs_of(product, prompt)) == (["4.160000"], 1)


def test_a_refused_video_says_calmly_that_the_money_is_back(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Not to be made")
    page = visit().sign_in()

    shown = order(page, f'{prompt} [sim: fail="internal error"]')

    expect(shown.locator('[data-chip="video"]')).to_have_text("No video")
    expect(shown.locator('[data-chip="money"]')).to_have_text("Back 4.16")
    expect(page.locator("#balance")).to_contain_text("100.00 USDC")
    assert (person.balance(), jobs_of(product, prompt)) == ("100.000000", 1)


def test_the_same_journey_in_chinese_on_a_phone(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("江南水乡的清晨，薄雾里一只乌篷船")
    page = visit(locale="zh-CN", viewport={"width": 390, "height": 844}, has_touch=True).sign_in()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    page.tap("a.composer-bar")
    page.locator("label", has_text="9:16").tap()
    page.fill("#prompt", prompt)
    expect(page.locator("#generate")).to_have_text("生成 · 4.16\xa0USDC")

    page.tap("#generate")

    shown = card(page, prompt)
    expect(shown.locator('[data-chip="money"]')).to_have_text("已预扣 4.16")
    expect(shown.locator('[data-chip="video"]')).to_have_text("已完成")
    expect(shown.locator(".message")).to_have_text("视频已完成；已扣费 4.16\xa0USDC。")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert (person.charges(), jobs_of(product, prompt)) == (["4.160000"], 1)


def test_without_script_a_video_is_ordered_read_and_deleted(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Plain pages")
    one = visit(java_script_enabled=False)
    one.tolerate("status of 410")  # the page of the deleted video
    page = one.sign_in()
    page.fill("#prompt", prompt)

    page.click("#generate")

    (video,) = person.videos()
    expect(card(page, prompt)).to_contain_text("Held 4.16")
    person.wait_until(video["id"], "completed")
    page.goto(f"{product.url}/videos/{video['id']}/")
    expect(page.locator(".summary")).to_contain_text("Your video is ready; 4.16\xa0USDC was charged.")
    page.click("form[action$=delete] button")
    expect(page.locator("main")).to_contain_text("removed for good; your balance does not change")
    page.click("main button[type=submit]")
    expect(page.locator("main")).to_contain_text("The video was deleted; your balance does not change.")
    gone = page.goto(f"{product.url}/videos/{video['id']}/")
    assert gone is not None and gone.status == 410
    assert (person.videos(), person.charges(), jobs_of(product, prompt)) == ([], ["4.160000"], 1)


def test_cancelling_in_the_dialog_returns_the_money(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Second thoughts")
    page = visit().sign_in()
    shown = order(page, f"{prompt} [sim: seconds=60 cancel=obey]")
    expect(shown.locator('[data-chip="video"]')).to_have_text("Making")

    shown.locator("summary").click()
    shown.locator('[data-action="cancel"] button').click()
    expect(page.locator("#cancel-text")).to_contain_text("Ask the provider to stop")
    page.locator("#cancel-dialog button[value=yes]").click()

    expect(shown.locator('[data-chip="money"]')).to_have_text("Back 4.16")
    assert (person.balance(), jobs_of(product, prompt)) == ("100.000000", 1)


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (1280, "light")])
def test_every_page_fits_its_window_and_complains_of_nothing(
    visit: Callable[..., Visit], person: Person, width: int, scheme: str
) -> None:
    one = visit(viewport={"width": width, "height": 800}, color_scheme=scheme, locale="zh-CN")
    page = one.sign_in()
    ready = order_over_api(person, unique("ready"))
    refused = order_over_api(person, unique('refused [sim: fail="x"]'))
    paths = ["/videos/", f"/videos/{ready}/", f"/videos/{refused}/", "/billing/", "/account/"]
    paths += ["/accounts/email/", "/accounts/password/change/", "/accounts/logout/"]
    for path in paths:
        page.goto(f"{person.product.url}{path}", wait_until="load")
        assert (
            page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        )
    page.goto(f"{person.product.url}/api/docs")
    expect(page.locator("#swagger-ui .opblock").first).to_be_visible()


def order_over_api(person: Person, prompt: str) -> str:
    client_id = str(uuid.uuid4())
    reply = person.api("POST", "/api/videos", {"id": client_id, "model": "veo3.1", "prompt": prompt})
    assert reply.status == 201
    return client_id


def test_a_newer_version_of_the_pages_is_told_and_disturbs_nothing(
    visit: Callable[..., Visit], person: Person, product: ProductProcess
) -> None:
    prompt = unique("Across a release")
    page = visit().sign_in()
    page.route(
        re.compile(r"/api/videos\?ids="),
        lambda route: route.fulfill(response=(answer := route.fetch()), headers=newer(answer.headers)),
    )

    shown = order(page, prompt)

    expect(page.locator("#notices")).to_contain_text(
        "A newer version is ready; reloading does not stop or repeat any video."
    )
    expect(shown.locator('[data-chip="video"]')).to_have_text("Ready")
    assert (person.charges(), jobs_of(product, prompt)) == (["4.160000"], 1)


def newer(headers: dict[str, str]) -> dict[str, str]:
    assert re.fullmatch("[0-9a-f]{12}", headers["x-oncereel-version"])
    return {**headers, "x-oncereel-version": "0" * 12}
