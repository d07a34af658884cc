"""Ordering on the video page without script: every press of the button charges what it said, once."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from billing import operations as billing
from billing.models import Charge, Transfer
from core.money import format_money
from tests import makers
from tests.makers import MODEL, PRICE_MICROS, Owner
from tests.pages.conftest import sign_in
from tests.pages.reading import Page, get, press
from tombstones.models import Claim
from videos.models import VideoTask

PROMPT = "A paper boat sails down a rain gutter"


def rows() -> tuple[int, int, int]:
    """Claims, tasks and charges of all people."""
    return Claim.objects.count(), VideoTask.objects.count(), Charge.objects.count()


def test_the_button_names_the_price_and_the_line_above_it_what_will_be_left(client: Client) -> None:
    page = get(client, "/videos/")

    assert "Generate · 4.16 USDC" in page.text
    assert "4.16 USDC balance after 95.84" in page.text
    assert page.form("/videos/").values["max_price"] == "4.160000"


def test_an_order_makes_one_task_and_one_charge_and_shows_them(client: Client, owner: Owner) -> None:
    form = get(client, "/videos/").form("/videos/")

    answer = press(client, form, "action", prompt=PROMPT)

    assert (answer.status_code, answer["Location"]) == (302, f"/videos/#{form.values['id']}")
    assert rows() == (1, 1, 1)
    assert Charge.objects.get().amount_micros == PRICE_MICROS
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS
    after = get(client, "/videos/")
    assert after.tasks == [form.values["id"]]
    assert "Waiting Held 4.16" in after.text
    assert PROMPT in after.text
    assert "95.84 USDC 4.16 held" in after.text


def test_the_next_form_after_an_order_is_empty_and_has_another_id(client: Client) -> None:
    form = get(client, "/videos/").form("/videos/")
    press(client, form, "action", prompt=PROMPT)

    following = get(client, "/videos/").form("/videos/")

    assert following.values["prompt"] == ""
    assert following.values["id"] != form.values["id"]


def test_the_same_form_sent_three_times_is_one_task_and_one_charge(client: Client, owner: Owner) -> None:
    form = get(client, "/videos/").form("/videos/")
    answers = [press(client, form, "action", prompt=PROMPT) for _ in range(3)]

    assert [(answer.status_code, answer["Location"]) for answer in answers] == [
        (302, f"/videos/#{form.values['id']}")
    ] * 3
    assert rows() == (1, 1, 1)
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS
    assert (
        "This request was already submitted; you see that one, and it is not charged again."
        in get(client, "/videos/").text
    )


def test_asking_for_the_price_of_other_settings_orders_nothing(client: Client) -> None:
    form = get(client, "/videos/").form("/videos/")

    page = Page(press(client, form, "quote", prompt=PROMPT, seconds="4", audio="false"))

    assert page.status == 200
    assert "Generate · 1.04 USDC" in page.text
    quoted = page.form("/videos/").values
    assert quoted == {
        **form.values,
        "csrfmiddlewaretoken": quoted["csrfmiddlewaretoken"],
        "prompt": PROMPT,
        "seconds": "4",
        "audio": "false",
        "max_price": "1.040000",
    }
    assert rows() == (0, 0, 0)


def test_the_first_button_of_the_form_is_the_one_that_spends_nothing(client: Client) -> None:
    assert list(get(client, "/videos/").form("/videos/").buttons) == ["quote", "action"]


def test_a_request_that_is_running_already_asks_before_it_is_paid_again(client: Client, owner: Owner) -> None:
    press(client, get(client, "/videos/").form("/videos/"), "action", prompt=PROMPT)

    page = Page(press(client, get(client, "/videos/").form("/videos/"), "action", prompt=f"  {PROMPT}\r\n"))

    assert page.status == 409
    assert "The same request has been running for 0 s; make another one for 4.16 USDC?" in page.text
    assert page.form("/videos/").values["prompt"].strip() == PROMPT
    assert rows() == (1, 1, 1)
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS

    answer = press(client, page.form("/videos/"), "action", confirm_same="yes")

    assert answer.status_code == 302
    assert rows() == (2, 2, 2)
    assert owner.balance_micros == 100_000_000 - 2 * PRICE_MICROS


def test_a_restored_form_with_edited_text_gets_a_new_id_and_charges_nothing(
    client: Client, owner: Owner
) -> None:
    form = get(client, "/videos/").form("/videos/")
    press(client, form, "action", prompt=PROMPT)

    page = Page(press(client, form, "action", prompt="A paper plane instead"))

    assert page.status == 422
    assert (
        "This id already belongs to another request, which is unchanged; nothing was charged for this one."
        in page.text
    )
    assert page.form("/videos/").values["prompt"] == "A paper plane instead"
    assert page.form("/videos/").values["id"] != form.values["id"]
    assert rows() == (1, 1, 1)
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS

    press(client, page.form("/videos/"), "action")

    assert rows() == (2, 2, 2)


def test_too_little_money_keeps_the_draft_and_charges_nothing_even_after_a_top_up(db: None) -> None:
    poor = makers.make_owner(balance="1")
    client = sign_in(poor)
    form = get(client, "/videos/").form("/videos/")

    page = Page(press(client, form, "action", prompt=PROMPT))

    assert page.status == 402
    assert (
        "Not started, because it costs 4.16 USDC and 1.00 USDC is available; nothing was charged."
        in page.text
    )
    assert page.form("/videos/").values["prompt"] == PROMPT
    assert page.form("/videos/").values["id"] != form.values["id"]
    assert "You need 3.16 USDC more for this video" in page.text
    assert (Charge.objects.count(), poor.balance_micros) == (0, 1_000_000)

    makers.top_up(poor.user, "50")
    late = press(client, form, "action", prompt=PROMPT)  # the first form once more, say from a slow network

    assert late.status_code == 402
    assert (Charge.objects.count(), poor.balance_micros) == (0, 51_000_000)

    assert press(client, page.form("/videos/"), "action").status_code == 302
    assert (Charge.objects.count(), poor.balance_micros) == (1, 51_000_000 - PRICE_MICROS)


def test_a_price_that_rose_since_the_page_was_shown_is_asked_for_anew(client: Client, owner: Owner) -> None:
    form = get(client, "/videos/").form("/videos/")
    billing.set_price(
        model=MODEL,
        resolution="720p",
        audio=True,
        unit="second",
        provider_micros=500_000,
        markup="1.3",
        now=timezone.now(),
    )

    page = Page(press(client, form, "action", prompt=PROMPT))

    assert page.status == 409
    assert (
        "The price changed from 4.16 USDC to 5.20 USDC before you submitted; nothing was charged."
        in page.text
    )
    assert "Generate · 5.20 USDC" in page.text
    assert page.form("/videos/").values["id"] == form.values["id"]
    assert rows() == (0, 0, 0)
    assert owner.balance_micros == 100_000_000

    assert press(client, page.form("/videos/"), "action").status_code == 302
    assert Charge.objects.get().amount_micros == 5_200_000


WRONG: dict[str, tuple[dict[str, str], str, str]] = {
    "no prompt": (
        {"prompt": " "},
        "Prompt is not valid: it is required; this request changed nothing.",
        "提示词不符合要求：必须填写；本次请求没有产生任何变化。",
    ),
    "prompt too long": (
        {"prompt": "梦" * 4001},
        "Prompt is not valid: it may have up to 4,000 characters; this request changed nothing.",
        "提示词不符合要求：最多 4,000 个字符；本次请求没有产生任何变化。",
    ),
    "seed": (
        {"seed": "lucky"},
        "Seed is not valid: it must be a whole number",
        "种子不符合要求：",
    ),
    "length that is not sold": ({"seconds": "5"}, "Length is not valid: ", "时长不符合要求："),
    "foreign model": (
        {"model": "nobody"},
        "nobody cannot be ordered at the moment; nothing was charged.",
        "nobody 暂时无法使用；未扣费。",
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_wrong_field_is_named_in_the_readers_language_and_nothing_changes(
    client: Client, owner: Owner, language: str, wrong: tuple[dict[str, str], str, str]
) -> None:
    client.cookies["django_language"] = language
    changes, english, chinese = wrong
    form = get(client, "/videos/").form("/videos/")

    page = Page(press(client, form, "action", **{"prompt": PROMPT, **changes}))

    assert page.status == 400
    assert (english if language == "en" else chinese) in page.text
    assert page.form("/videos/").values["id"] == form.values["id"]
    assert rows() == (0, 0, 0)
    assert owner.balance_micros == 100_000_000


def test_a_prompt_of_exactly_the_limit_is_taken_although_its_line_ends_travel_as_two(client: Client) -> None:
    prompt = "\r\n".join(["四" * 9] * 400) + "十"  # 4,000 code points once each line end is one
    form = get(client, "/videos/").form("/videos/")

    assert press(client, form, "action", prompt=prompt).status_code == 302
    task = VideoTask.objects.select_related("payload").get()
    assert (len(task.payload.prompt), "\r" in task.payload.prompt) == (4000, False)


def test_using_a_video_again_fills_the_form_with_its_settings_and_a_new_id(
    client: Client, owner: Owner
) -> None:
    earlier = makers.submit(
        owner, prompt=PROMPT, seconds=4, resolution="1080p", aspect_ratio="9:16", audio=False, seed=7
    )

    values = get(client, f"/videos/?again={earlier}").form("/videos/").values

    assert {
        name: values[name] for name in ("prompt", "seconds", "resolution", "aspect_ratio", "audio", "seed")
    } == {
        "prompt": PROMPT,
        "seconds": "4",
        "resolution": "1080p",
        "aspect_ratio": "9:16",
        "audio": "false",
        "seed": "7",
    }
    assert values["id"] != earlier
    assert rows() == (1, 1, 1)


def test_a_strangers_video_cannot_be_used_again(client: Client) -> None:
    other = makers.make_owner()
    theirs = makers.submit(other, prompt="their secret")

    assert client.get(f"/videos/?again={theirs}").status_code == 404


def test_an_example_prompt_fills_the_form_and_orders_nothing(client: Client) -> None:
    page = get(client, "/videos/")
    example = next(link for link in page.links if link.startswith("?prompt="))

    filled = get(client, f"/videos/{example.partition('#')[0]}")

    assert filled.form("/videos/").values["prompt"].startswith("A lighthouse on a cliff")
    assert rows() == (0, 0, 0)


def test_models_for_drills_are_offered_in_development_only(client: Client, settings: Any) -> None:
    settings.DEBUG = False
    assert makers.BLIND_MODEL not in get(client, "/videos/").source

    settings.DEBUG = True
    assert makers.BLIND_MODEL in get(client, "/videos/").source


def test_a_model_without_a_price_cannot_be_ordered_from_the_page(client: Client) -> None:
    form = get(client, "/videos/").form("/videos/")
    billing.withdraw_prices(model=MODEL, now=timezone.now())

    page = Page(press(client, form, "action", prompt=PROMPT))

    assert page.status == 400
    assert "nothing was charged" in page.text
    assert rows() == (0, 0, 0)


def test_a_person_who_is_not_signed_in_is_sent_to_sign_in_and_orders_nothing(db: None) -> None:
    stranger = Client()

    for answer in (stranger.get("/videos/"), stranger.post("/videos/", {"prompt": PROMPT})):
        assert (answer.status_code, answer["Location"]) == (302, "/accounts/login/?next=/videos/")
    assert rows() == (0, 0, 0)
    assert Transfer.objects.count() == 0


def test_an_order_in_chinese_says_price_and_state_in_chinese(client: Client) -> None:
    client.cookies["django_language"] = "zh-hans"
    page = get(client, "/videos/")
    assert page.language == "zh-Hans"
    assert f"生成 · {format_money(PRICE_MICROS, 'USDC')}".replace("\xa0", " ") in page.text

    press(client, page.form("/videos/"), "action", prompt="江南水乡的清晨")

    after = get(client, "/videos/").text
    assert "等待中 已预扣 4.16" in after
    assert "请求已保存，正在等待发送；已预扣 4.16 USDC，未生成视频会全额退回。" in after
