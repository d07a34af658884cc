"""C27: a model without a price, or one that is not offered, is not ordered."""

from typing import Any

import pytest
from django.utils import timezone

from billing import operations as billing
from tests import makers
from tests.cases.evidence import changed_tables, rows
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def test_a_model_without_a_price_is_refused_and_nothing_is_sent(owner: Owner, simulator: Any) -> None:
    billing.withdraw_prices(model=makers.MODEL, now=timezone.now())
    before = rows()
    answer = makers.post(owner, makers.order())
    assert (answer.status_code, answer.json()["code"]) == (400, "model_unavailable")
    assert answer.json()["field"] == "model"
    assert changed_tables(before) == []
    makers.work()
    assert (simulator.posts(), owner.balance_micros) == (0, 100_000_000)
    (shown,) = [row for row in owner.api.get("/api/models").json()["results"] if row["model"] == makers.MODEL]
    assert (shown["available"], shown["prices"]) == (False, [])


def test_an_option_without_a_price_of_its_own_is_refused_although_the_model_has_others(
    owner: Owner, simulator: Any
) -> None:
    billing.withdraw_prices(model="veo3.1-fast", now=timezone.now())
    billing.set_price(
        model="veo3.1-fast",
        resolution="720p",
        audio=False,
        unit="second",
        provider_micros=100_000,
        markup="1.3",
        now=timezone.now(),
    )
    before = rows()
    for option in ({"audio": True}, {"audio": False, "resolution": "1080p"}):
        answer = makers.post(owner, makers.order(model="veo3.1-fast", **option))
        assert (answer.status_code, answer.json()["code"]) == (400, "model_unavailable")
    assert changed_tables(before) == []
    assert makers.post(owner, makers.order(model="veo3.1-fast", audio=False)).status_code == 201


@pytest.mark.parametrize("model", ["no-such-model", "veo3.1 ", "VEO3.1", "fal-ai/veo3.1"])
def test_an_unknown_model_is_refused_and_the_same_id_may_be_used_afterwards(
    owner: Owner, simulator: Any, model: str
) -> None:
    document = makers.order(model=model)
    before = rows()
    answer = makers.post(owner, document)
    assert (answer.status_code, answer.json()["code"]) == (400, "model_unavailable")
    assert changed_tables(before) == []
    assert makers.post(owner, {**document, "model": makers.MODEL}).status_code == 201


def test_a_task_that_waits_when_its_model_loses_its_price_is_still_made_at_its_own(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner)
    billing.withdraw_prices(model=makers.MODEL, now=timezone.now())
    makers.work()
    assert makers.represent(owner, client_id)["state"] == "completed"
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS
