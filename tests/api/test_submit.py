"""POST /api/videos: what a new order is answered with, and the refusals that look at the world."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import ApiToken
from billing import operations as billing
from billing.models import Account, Charge
from tests import makers
from tests.api.answers import CHINESE, assert_problem, charged, nothing_changes
from tests.makers import Owner
from tombstones.models import Claim
from videos.models import Payload, ProviderStatus, TaskEvent, VideoTask
from videos.queries import events_of

pytestmark = pytest.mark.django_db

PRICE = "4.160000"
KEYS = {
    *("id", "state", "submission_state", "phase", "progress", "queue_position", "eta", "model", "prompt"),
    *("seconds", "resolution", "aspect_ratio", "audio", "seed", "charge", "message", "error", "cancel"),
    *("result", "late", "created_at", "accepted_at", "finished_at", "poll_after_seconds", "chips"),
}


def test_a_new_order_is_201_with_the_task_its_address_and_its_charge(owner: Owner):
    answer = makers.post(owner, makers.order(id="my-first-video", prompt="a cat"))
    assert answer.status_code == 201
    assert answer["Location"] == "/api/videos/my-first-video"
    assert answer["Cache-Control"] == "no-store"
    assert answer["Content-Type"] == "application/json"
    assert "Idempotent-Replayed" not in answer
    task = answer.json()
    assert set(task) == KEYS
    assert task["id"] == "my-first-video"
    assert (task["state"], task["submission_state"], task["phase"]) == ("submitting", "submitting", None)
    assert (task["progress"], task["queue_position"], task["eta"], task["late"]) == (None, None, None, False)
    assert (task["model"], task["prompt"], task["seconds"]) == ("veo3.1", "a cat", 8)
    assert (task["resolution"], task["aspect_ratio"], task["audio"]) == ("720p", "16:9", True)
    assert (task["seed"], task["error"], task["result"]) == (None, None, None)
    assert task["charge"] == charged(owner, PRICE)
    assert task["cancel"] == {"possible": True, "refund": PRICE}
    assert (task["accepted_at"], task["finished_at"], task["poll_after_seconds"]) == (None, None, 2)
    assert task["created_at"].endswith("Z")
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS


def test_what_is_asked_for_is_what_is_ordered_and_charged(owner: Owner):
    order = makers.order(
        seconds=4, resolution="1080p", aspect_ratio="9:16", audio=False, seed=2**31 - 1, max_price="1.04"
    )
    task = makers.post(owner, order).json()
    assert {name: task[name] for name in ("seconds", "resolution", "aspect_ratio", "audio", "seed")} == {
        "seconds": 4,
        "resolution": "1080p",
        "aspect_ratio": "9:16",
        "audio": False,
        "seed": 2**31 - 1,
    }
    assert task["charge"]["amount"] == "1.040000"  # 4 s × 0.20 × 1.3
    charge = Charge.objects.get()
    assert (charge.amount_micros, charge.max_price_micros) == (1_040_000, 1_040_000)
    assert (charge.unit_price_micros, charge.quantity) == (260_000, 4)
    assert charge.token_id == owner.token.pk


def test_a_new_order_leaves_one_row_of_each_kind(owner: Owner):
    client_id = makers.post(owner, makers.order()).json()["id"]
    claim = Claim.objects.get()
    assert (claim.owner_id, claim.client_id, claim.state) == (owner.id, client_id, "live")
    for model in (VideoTask, Charge, Payload):
        assert [row.pk for row in model.objects.all()] == [claim.pk]
    (event,) = TaskEvent.objects.all()
    assert (event.from_state, event.to_state, event.cause, event.actor) == (
        *("", "submitting"),
        *("submitted", "owner"),
    )


def test_a_shortage_is_402_with_what_it_costs_and_is_remembered():
    poor = makers.make_owner(balance="4.159999")
    answer = makers.post(poor, makers.order(id="too-dear-1"))
    document = assert_problem(answer, 402, "insufficient_balance", id="too-dear-1")
    assert document["charge"] == charged(poor, "0.000000", state="not_charged")
    assert document["task"]["state"] == "failed"
    assert document["task"]["error"]["code"] == "insufficient_balance"
    assert poor.balance_micros == 4_159_999
    assert Charge.objects.count() == 0
    assert [event.cause for event in events_of(Claim.objects.get().pk)] == ["insufficient_balance"]


def test_exactly_enough_money_is_enough():
    owner = makers.make_owner(balance="4.16")
    assert makers.post(owner, makers.order()).status_code == 201
    assert owner.balance_micros == 0
    assert makers.post(owner, makers.order()).status_code == 402


def test_an_owner_who_never_paid_anything_in_is_answered_402():
    newcomer = makers.make_owner(balance="0")
    assert makers.post(newcomer, makers.order()).status_code == 402
    assert not Account.objects.exists()


def test_c27_a_model_without_a_price_is_refused_and_nothing_is_left(owner: Owner):
    billing.withdraw_prices(model="veo3.1", now=timezone.now())
    with nothing_changes():
        document = assert_problem(makers.post(owner, makers.order()), 400, "model_unavailable", field="model")
    assert document["detail"].endswith("nothing was charged.")


@pytest.mark.parametrize(("max_price", "status"), [("4.16", 201), ("4.159999", 409), ("0", 409), ("99", 201)])
def test_max_price_is_the_most_that_is_charged(owner: Owner, max_price: str, status: int):
    answer = makers.post(owner, makers.order(max_price=max_price))
    assert answer.status_code == status
    if status == 201:
        assert answer.json()["charge"]["amount"] == PRICE


def test_a_price_above_max_price_is_refused_with_both_and_leaves_no_row(owner: Owner):
    with nothing_changes():
        document = assert_problem(makers.post(owner, makers.order(max_price="4")), 409, "price_changed")
    text = document["detail"].replace("\u00a0", " ")
    assert text == (
        "The price changed from 4.00 USDC to 4.16 USDC before you submitted; nothing was charged."
    )


def set_limit(owner: Owner, **limits: int) -> None:
    assert Account.objects.filter(pk=owner.id).update(**limits) == 1


def assert_limit(owner: Owner, order: dict[str, Any], said: str) -> None:
    with nothing_changes():
        document = assert_problem(makers.post(owner, order), 409, "limit_reached")
        chinese = owner.api.post(
            "/api/videos", order, content_type="application/json", headers=CHINESE
        ).json()
    text = document["detail"].replace("\u00a0", " ")
    assert text == f"Not started, because it would pass the limit of {said}; nothing was charged."
    assert "Not started" not in chinese["detail"]
    assert makers.get(owner, order["id"]).status_code == 404


def test_the_limit_on_running_videos_leaves_no_row_and_frees_with_each_end(owner: Owner):
    set_limit(owner, in_flight_limit=1)
    first = makers.order()
    assert makers.post(owner, first).status_code == 201
    second = makers.order()
    assert_limit(owner, second, "1 video at once")
    assert makers.post(owner, first).status_code == 200  # a known id is not judged again
    assert owner.api.post(f"/api/videos/{first['id']}/cancel").status_code == 200
    assert makers.post(owner, second).status_code == 201


def test_the_owners_limit_of_a_day_counts_what_was_charged_today(owner: Owner):
    set_limit(owner, daily_spend_limit_micros=2 * makers.PRICE_MICROS)
    for _ in range(2):
        assert makers.post(owner, makers.order()).status_code == 201
    assert_limit(owner, makers.order(), "8.32 USDC a day")


def test_a_daily_limit_of_nothing_allows_nothing(owner: Owner):
    set_limit(owner, daily_spend_limit_micros=0)
    assert_limit(owner, makers.order(), "0.00 USDC a day")


def test_the_tokens_limit_counts_that_token_alone(owner: Owner):
    ApiToken.objects.filter(pk=owner.token.pk).update(daily_spend_limit_micros=makers.PRICE_MICROS)
    makers.submit(owner)  # ordered without the token
    assert makers.post(owner, makers.order()).status_code == 201
    assert_limit(owner, makers.order(), "4.16 USDC with this token")


def test_the_providers_limit_counts_every_owner_and_says_no_figure(owner: Owner):
    ProviderStatus.objects.create(provider="fal", daily_spend_limit_micros=makers.PRICE_MICROS)
    assert makers.post(makers.make_owner(), makers.order()).status_code == 201
    assert_limit(owner, makers.order(), "what may be ordered from this provider in a day")


def test_charges_of_yesterday_do_not_count(owner: Owner, monkeypatch: pytest.MonkeyPatch):
    set_limit(owner, daily_spend_limit_micros=makers.PRICE_MICROS)
    assert makers.post(owner, makers.order()).status_code == 201
    tomorrow = timezone.now() + timedelta(days=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: tomorrow)
    assert makers.post(owner, makers.order()).status_code == 201
    assert makers.post(owner, makers.order()).status_code == 409


def test_the_id_of_an_order_that_met_a_limit_may_be_used_again(owner: Owner):
    set_limit(owner, daily_spend_limit_micros=0)
    order = makers.order()
    assert makers.post(owner, order).status_code == 409
    set_limit(owner, daily_spend_limit_micros=10**9)
    assert makers.post(owner, order).status_code == 201
