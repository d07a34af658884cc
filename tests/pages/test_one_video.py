"""The page of one video: its story, its money, cancelling and deleting with a question first."""

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from billing.kinds import ChargeState
from billing.models import Charge, Transfer
from tests import makers
from tests.makers import Owner
from tests.pages.conftest import sign_in
from tests.pages.reading import Page, get, press
from tombstones.models import Claim
from videos import operations
from videos.events import FAILED_WORDS
from videos.models import VideoTask


def confirm(client: Client, client_id: str, action: str) -> tuple[Page, Any]:
    """Press the button on the video's page, then that on the page that asks: that page, the last answer."""
    path = f"/videos/{client_id}/{action}"
    question = Page(press(client, get(client, f"/videos/{client_id}/").form(path)))
    return question, press(client, question.form(path))


def test_a_finished_video_shows_its_player_its_story_and_its_ledger_lines(
    client: Client, owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt="a cat on a roof")
    makers.work()

    page = get(client, f"/videos/{client_id}/")

    assert page.status == 200
    assert "Ready Charged 4.16 Your video is ready; 4.16 USDC was charged. a cat on a roof" in page.text
    story = (
        "Your request was saved and its price held.",
        "The provider took it.",
        "The video was saved to your cloud space, and the price was charged.",
    )
    places = [page.text.index(sentence) for sentence in story]
    assert places == sorted(places)
    assert page.text.count("−4.16 USDC") == 1
    result = makers.get(owner, client_id).json()["result"]["url"]
    assert result in page.links
    film: Any = client.get(result)
    assert (film.status_code, film["Content-Type"]) == (200, "video/mp4")
    assert b"ftyp" in b"".join(film.streaming_content)[:12]


def test_a_failed_video_shows_that_the_money_came_back(client: Client, owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt='x [sim: fail="internal error"]')
    makers.work()

    text = get(client, f"/videos/{client_id}/").text

    assert "No video Back 4.16" in text
    assert "It ended without a video, and your money was returned." in text
    assert "−4.16 USDC" in text and "+4.16 USDC" in text


def test_an_order_without_money_shows_that_nothing_was_charged(db: None) -> None:
    poor = makers.make_owner(balance="1")
    client_id = makers.submit(poor, prompt="too dear")

    text = get(sign_in(poor), f"/videos/{client_id}/").text

    assert "No video Not charged" in text
    assert "Your balance did not cover it; nothing was charged." in text
    assert "Nothing was charged." in text
    assert "your money was returned" not in text


def test_the_story_in_chinese_has_no_english_sentence(client: Client, owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt="屋顶上的猫")
    makers.work()
    client.cookies["django_language"] = "zh-hans"

    text = get(client, f"/videos/{client_id}/").text

    assert "请求已保存，费用已预扣。" in text
    assert "服务商已接收请求。" in text
    assert "视频已保存到云空间，费用已扣除。" in text
    assert "视频预扣" in text and "视频扣费" in text
    for english in ("Your", "provider", "video", "Held", "Charged", "balance"):
        assert english not in text


@pytest.mark.parametrize("path", ["", "cancel", "delete"])
def test_a_strangers_video_is_a_page_that_does_not_exist(client: Client, path: str) -> None:
    other = makers.make_owner()
    theirs = makers.submit(other, prompt="their secret")

    for client_id in (theirs, str(uuid4()), "no id at all"):
        address = f"/videos/{client_id}/{path}"
        answer = client.post(address, {"confirmed": "yes"}) if path else client.get(address)
        assert answer.status_code == 404
        assert "their secret" not in answer.content.decode()
    assert makers.task_of(other, theirs).state == "submitting"
    assert other.balance_micros == 100_000_000 - makers.PRICE_MICROS


def test_cancelling_before_it_is_sent_asks_first_and_returns_everything(client: Client, owner: Owner) -> None:
    client_id = makers.submit(owner, prompt="second thoughts")

    question, answer = confirm(client, client_id, "cancel")

    assert question.status == 200
    assert "Cancel now: it has not been sent, and all 4.16 USDC comes back." in question.text
    assert (answer.status_code, answer["Location"]) == (302, f"/videos/{client_id}/")
    assert (
        "Cancelled as you asked; 4.16 USDC is back in your balance." in get(client, answer["Location"]).text
    )
    assert owner.balance_micros == 100_000_000


def test_the_question_alone_cancels_nothing(client: Client, owner: Owner) -> None:
    client_id = makers.submit(owner, prompt="only looking")

    press(client, get(client, f"/videos/{client_id}/").form(f"/videos/{client_id}/cancel"))
    client.get(f"/videos/{client_id}/cancel")

    assert makers.task_of(owner, client_id).state == "submitting"
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS


def test_a_cancel_that_comes_too_late_says_so_and_changes_nothing(
    client: Client, owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt="too late")
    path = f"/videos/{client_id}/cancel"
    question = Page(press(client, get(client, f"/videos/{client_id}/").form(path)))
    makers.work()

    answer = press(client, question.form(path))

    assert answer.status_code == 302
    text = get(client, answer["Location"]).text
    assert "This cannot be cancelled now. Your video is ready; 4.16 USDC was charged." in text
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS


def test_deleting_asks_first_and_then_the_page_is_gone_for_good(
    client: Client, owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt="no longer wanted")
    makers.work()

    question, answer = confirm(client, client_id, "delete")

    assert "The video and its record are removed for good; your balance does not change." in question.text
    assert (answer.status_code, answer["Location"]) == (302, "/videos/")
    after = get(client, "/videos/")
    assert "The video was deleted; your balance does not change." in after.text
    assert after.tasks == []
    gone = get(client, f"/videos/{client_id}/")
    assert gone.status == 410
    assert "4.16 USDC had been charged, and it will not be made or charged again." in gone.text
    assert "no longer wanted" not in gone.source
    assert (VideoTask.objects.count(), Charge.objects.count()) == (0, 1)
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS


def test_an_unfinished_video_offers_no_delete_and_refuses_one(client: Client, owner: Owner) -> None:
    client_id = makers.submit(owner, prompt="in the works")
    path = f"/videos/{client_id}/delete"
    assert 'data-action="delete" hidden' in get(client, f"/videos/{client_id}/").source

    answer = client.post(path, {"confirmed": "yes"})

    assert (answer.status_code, answer["Location"]) == (302, f"/videos/{client_id}/")
    assert (
        "This cannot be deleted while its outcome is open, because it is the proof for your 4.16 USDC"
        in get(client, f"/videos/{client_id}/").text
    )
    assert makers.task_of(owner, client_id).state == "submitting"
    assert Claim.objects.get().state == "live"


def test_a_withdrawn_id_has_a_page_that_says_nothing_was_charged(client: Client, owner: Owner) -> None:
    client_id = makers.new_client_id()
    operations.abandon(owner_id=owner.id, client_id=client_id, now=timezone.now())

    page = get(client, f"/videos/{client_id}/")

    assert page.status == 410
    assert (
        "This request was not accepted and will not be accepted any more; nothing was charged." in page.text
    )
    assert Transfer.objects.filter(charge_id__isnull=False).count() == 0


def test_a_gone_video_can_be_neither_cancelled_nor_deleted_again(
    client: Client, owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt="gone")
    makers.work()
    confirm(client, client_id, "delete")

    for action in ("cancel", "delete"):
        answer = client.post(f"/videos/{client_id}/{action}", {"confirmed": "yes"})
        assert answer.status_code == 410
    assert Charge.objects.count() == 1


def test_each_way_the_charge_of_a_failed_video_ends_has_words_and_only_a_return_is_called_one() -> None:
    assert set(FAILED_WORDS) == set(ChargeState) - {ChargeState.CHARGED}
    assert {state for state, words in FAILED_WORDS.items() if "returned" in words} == {
        ChargeState.REFUNDED,
        ChargeState.PARTIALLY_REFUNDED,
    }
    assert len(set(FAILED_WORDS.values())) == 4
