"""GET /api/models: what can be ordered and what it costs today."""

from typing import Any

import pytest
from django.utils import timezone

from billing import operations as billing
from tests import makers
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def models(owner: Owner) -> dict[str, dict[str, Any]]:
    answer = owner.api.get("/api/models")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    document = answer.json()
    assert document["next_cursor"] is None
    return {model["model"]: model for model in document["results"]}


def test_a_model_says_what_it_offers_and_what_it_costs(owner: Owner):
    model = models(owner)["veo3.1"]
    assert (model["provider"], model["input"], model["available"]) == ("fal", "text", True)
    assert (model["seconds"], model["resolutions"]) == ([4, 6, 8], ["720p", "1080p"])
    assert (model["aspect_ratios"], model["audio"]) == (["16:9", "9:16"], True)
    assert model["default"] == {
        "seconds": 8,
        "resolution": "720p",
        "aspect_ratio": "16:9",
        "audio": True,
    }
    assert (model["currency"], model["usual_seconds"]) == ("USDC", {"low": 60, "high": 180})
    assert (model["charges_on_refusal"], model["max_prompt"]) == (False, 4000)
    assert len(model["prices"]) == 12
    assert {"seconds": 8, "resolution": "720p", "audio": True, "price": "4.160000"} in model["prices"]


def test_every_price_listed_is_the_price_charged(owner: Owner):
    makers.top_up(owner.user, "10000")
    for model in models(owner).values():
        for price in model["prices"]:
            order = makers.order(
                model=model["model"],
                seconds=price["seconds"],
                resolution=price["resolution"],
                audio=price["audio"],
                max_price=price["price"],
            )
            answer = makers.post(owner, order)
            assert answer.status_code == 201, answer.content
            assert answer.json()["charge"]["amount"] == price["price"]


def test_a_model_without_a_price_is_shown_as_not_available(owner: Owner):
    billing.withdraw_prices(model="veo3.1", now=timezone.now())
    model = models(owner)["veo3.1"]
    assert (model["prices"], model["available"]) == ([], False)


def test_the_price_of_today_is_listed(owner: Owner):
    billing.set_price(
        model="kling-2.5-turbo",
        resolution="1080p",
        audio=False,
        unit="second",
        provider_micros=100_001,
        markup="1.3",
        now=timezone.now(),
    )
    prices = {price["seconds"]: price["price"] for price in models(owner)["kling-2.5-turbo"]["prices"]}
    assert prices == {5: "0.650010", 10: "1.300020"}  # 0.1300013 a second, up to the next micro: 0.130002


def test_the_list_costs_two_queries(owner: Owner, django_assert_num_queries: Any):
    models(owner)
    with django_assert_num_queries(2):  # the token, the prices
        models(owner)
