"""C24: the price changes while a video is being made."""

from typing import Any

import pytest
from django.utils import timezone

from billing import operations as billing
from billing.models import Charge
from tests import makers
from tests.cases.evidence import kinds_of, state_of
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def set_provider_price(micros: int) -> None:
    """The provider's price of a second of veo3.1 with sound at 720p; ours is × 1.3."""
    opened = billing.set_price(
        model=makers.MODEL,
        resolution="720p",
        audio=True,
        unit="second",
        provider_micros=micros,
        markup="1.3",
        now=timezone.now(),
    )
    assert opened is not None


@pytest.mark.parametrize("new_price", [4_000_000, 10_000], ids=["raised", "lowered"])
@pytest.mark.parametrize(
    ("prompt", "end", "returned"),
    [("a cat", ("completed", "settled"), 0), ('a cat [sim: fail="no"]', ("failed", "refunded"), 4_160_000)],
    ids=["completes", "fails"],
)
def test_a_price_changed_in_flight_changes_nothing_of_what_was_ordered(
    owner: Owner, simulator: Any, new_price: int, prompt: str, end: tuple[str, str], returned: int
) -> None:
    client_id = makers.submit(owner, prompt=prompt)
    set_provider_price(new_price)
    makers.work()
    assert state_of(owner, client_id)[:2] == end
    view = makers.view(owner, client_id)
    assert (view.charged_micros, view.returned_micros) == (4_160_000, returned)
    assert owner.balance_micros == 100_000_000 - 4_160_000 + returned


def test_the_next_order_pays_the_new_price_and_says_so_before(owner: Owner, simulator: Any) -> None:
    makers.submit(owner)
    set_provider_price(500_000)
    refused = makers.post(owner, makers.order(max_price="4.16"))
    assert (refused.status_code, refused.json()["code"]) == (409, "price_changed")
    assert Charge.objects.count() == 1
    accepted = makers.post(owner, makers.order(max_price="5.20"))
    assert (accepted.status_code, accepted.json()["charge"]["amount"]) == (201, "5.200000")


@pytest.mark.parametrize("units", ["3", "0.5"])
def test_less_used_than_ordered_is_returned_at_the_frozen_price_and_more_is_never_charged(
    owner: Owner, simulator: Any, units: str
) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: units={units}]")
    set_provider_price(900_000)
    makers.work()
    kept = {"3": 1_560_000, "0.5": 260_000}[units]
    assert makers.view(owner, client_id).returned_micros == 4_160_000 - kept
    assert owner.balance_micros == 100_000_000 - kept
    assert state_of(owner, client_id)[:2] == ("completed", "partially_refunded")
    assert sorted(kinds_of(owner, client_id)) == ["charge", "refund", "settle"]


def test_more_used_than_ordered_is_not_charged(owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: units=80]")
    makers.work()
    assert state_of(owner, client_id)[:2] == ("completed", "settled")
    assert owner.balance_micros == 100_000_000 - 4_160_000
