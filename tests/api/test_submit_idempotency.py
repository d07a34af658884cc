"""POST /api/videos with an id that is known: always the first answer, never a second charge."""

import json
import uuid
from typing import Any

import pytest
from django.utils import timezone

from billing import operations as billing
from billing.models import Account, Charge
from tests import makers
from tests.api.answers import assert_problem, charged, nothing_changes
from tests.makers import Owner
from videos import catalogue
from videos.models import ProviderStatus, VideoTask

pytestmark = pytest.mark.django_db

PRICE = "4.160000"


def assert_replay(answer: Any, client_id: str) -> dict[str, Any]:
    assert answer.status_code == 200, answer.content
    assert answer["Idempotent-Replayed"] == "true"
    assert answer["Location"] == f"/api/videos/{client_id}"
    assert answer["Cache-Control"] == "no-store"
    task: dict[str, Any] = answer.json()
    assert task["id"] == client_id
    return task


def test_c02_the_same_order_five_times_is_one_task_and_one_charge(owner: Owner):
    order = makers.order()
    first = makers.post(owner, order)
    assert first.status_code == 201
    with nothing_changes():
        for _ in range(5):
            assert assert_replay(makers.post(owner, order), order["id"]) == first.json()
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS


def test_order_of_names_and_white_space_do_not_make_another_request(owner: Owner):
    order = makers.order(seed=7, prompt="a cat — 猫")
    assert makers.post(owner, order).status_code == 201
    spellings = [
        json.dumps(dict(reversed(order.items()))),
        json.dumps(order, indent=4),
        json.dumps(order, ensure_ascii=False, separators=(",", ":")),
    ]
    with nothing_changes():
        for text in spellings:
            answer = owner.api.post("/api/videos", text, content_type="application/json")
            assert_replay(answer, order["id"])


@pytest.mark.parametrize(
    "spelling",
    [
        "{}",
        "{{{}}}",
        "urn:uuid:{}",
        "upper",
        "hex",
        "upper hex",
    ],
)
def test_every_spelling_of_a_uuid_is_the_same_id(owner: Owner, spelling: str):
    key = uuid.uuid4()
    spelled = {"upper": str(key).upper(), "hex": key.hex, "upper hex": key.hex.upper()}.get(
        spelling, spelling.format(key)
    )
    assert makers.post(owner, makers.order(id=str(key))).status_code == 201
    with nothing_changes():
        assert_replay(makers.post(owner, makers.order(id=spelled)), str(key))
    assert owner.api.get(f"/api/videos/{spelled}").json()["id"] == str(key)


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "a dog on a roof"},
        {"prompt": "a cat on a roof "},
        {"seconds": 4},
        {"seconds": 8},  # the default, but not as it was sent
        {"model": "veo3.1-fast"},
        {"model": "no-such-model"},
        {"audio": True},
        {"seed": 0},
        {"resolution": "720p"},
        {"image_url": "https://images.example/a.png"},
    ],
    ids=str,
)
def test_c04_the_same_id_with_another_body_is_422_and_nothing_is_touched(owner: Owner, change: dict):
    order = makers.order()
    first = makers.post(owner, order).json()
    with nothing_changes():
        document = assert_problem(makers.post(owner, {**order, **change}), 422, "id_reused")
    assert "nothing was charged for this one" in document["detail"]
    assert makers.get(owner, order["id"]).json() == first


def test_max_price_is_not_part_of_the_request(owner: Owner):
    order = makers.order(max_price="5")
    assert makers.post(owner, order).status_code == 201
    with nothing_changes():
        for max_price in ("4.16", "0", "1000"):
            task = assert_replay(makers.post(owner, {**order, "max_price": max_price}), order["id"])
            assert task["charge"]["amount"] == PRICE
        del order["max_price"]
        assert_replay(makers.post(owner, order), order["id"])
    assert Charge.objects.get().max_price_micros == 5_000_000


def test_c24_a_replay_after_a_price_rise_has_the_original_price(owner: Owner):
    order = makers.order(max_price="4.16")
    assert makers.post(owner, order).status_code == 201
    billing.set_price(
        model="veo3.1",
        resolution="720p",
        audio=True,
        unit="second",
        provider_micros=900_000,
        markup="1.3",
        now=timezone.now(),
    )
    with nothing_changes():
        task = assert_replay(makers.post(owner, order), order["id"])
    assert task["charge"] == charged(owner, PRICE)
    assert_problem(makers.post(owner, makers.order(max_price="4.16")), 409, "price_changed")


def test_a_known_id_is_answered_when_its_model_has_no_price_any_more(owner: Owner):
    order = makers.order()
    first = makers.post(owner, order).json()
    billing.withdraw_prices(model="veo3.1", now=timezone.now())
    with nothing_changes():
        assert assert_replay(makers.post(owner, order), order["id"]) == first


def test_a_known_id_is_answered_when_its_model_has_left_the_catalogue(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
):
    order = makers.order()
    first = makers.post(owner, order).json()
    monkeypatch.setattr(catalogue, "_BY_NAME", {})
    with nothing_changes():
        assert_problem(makers.post(owner, makers.order()), 400, "model_unavailable")
        assert assert_replay(makers.post(owner, order), order["id"]) == first
        assert makers.get(owner, order["id"]).status_code == 200
        assert owner.api.get("/api/videos").status_code == 200


def test_a_known_id_is_answered_whatever_the_limits_say(owner: Owner):
    order = makers.order()
    assert makers.post(owner, order).status_code == 201
    Account.objects.update(in_flight_limit=0, daily_spend_limit_micros=0)
    ProviderStatus.objects.create(provider="fal", daily_spend_limit_micros=0)
    with nothing_changes():
        assert_replay(makers.post(owner, order), order["id"])
        assert_problem(makers.post(owner, makers.order()), 409, "limit_reached")


def test_a_replay_tells_the_task_as_it_is_now(owner: Owner, simulator: Any):
    order = makers.order()
    assert makers.post(owner, order).status_code == 201
    makers.work()
    task = assert_replay(makers.post(owner, order), order["id"])
    assert (task["state"], task["charge"]["state"]) == ("completed", "settled")
    assert simulator.count() == 1


def test_a_shortage_is_remembered_after_a_top_up():
    """A late duplicate must not spend money that came afterwards."""
    poor = makers.make_owner(balance="1")
    order = makers.order()
    first = assert_problem(makers.post(poor, order), 402, "insufficient_balance")
    makers.top_up(poor.user, "100")
    with nothing_changes():
        again = assert_problem(makers.post(poor, order), 402, "insufficient_balance")
    assert (again["id"], again["charge"], again["detail"]) == (first["id"], first["charge"], first["detail"])
    assert poor.balance_micros == 101_000_000
    assert makers.post(poor, makers.order()).status_code == 201


def test_a_shortage_with_another_body_is_422():
    poor = makers.make_owner(balance="1")
    order = makers.order()
    assert makers.post(poor, order).status_code == 402
    with nothing_changes():
        assert_problem(makers.post(poor, {**order, "seconds": 4}), 422, "id_reused")


@pytest.mark.parametrize("prompt", ["a cat on a roof", "another prompt"])
def test_a_deleted_id_is_410_for_ever_whatever_the_body(owner: Owner, simulator: Any, prompt: str):
    order = makers.order()
    assert makers.post(owner, order).status_code == 201
    makers.work()
    assert owner.api.delete(f"/api/videos/{order['id']}").status_code == 204
    with nothing_changes():
        for answer in (makers.post(owner, {**order, "prompt": prompt}), makers.get(owner, order["id"])):
            document = assert_problem(answer, 410, "deleted", id=order["id"])
            assert document["charge"] == charged(owner, PRICE, state="settled")
            assert "will not be made or charged again" in document["detail"]
    assert simulator.count() == 1


def test_an_abandoned_id_is_410_for_ever(owner: Owner):
    order = makers.order()
    assert owner.api.post(f"/api/videos/{order['id']}/abandon").status_code == 200
    with nothing_changes():
        for answer in (makers.post(owner, order), makers.get(owner, order["id"])):
            document = assert_problem(answer, 410, "abandoned", id=order["id"])
            assert document["charge"] == charged(owner, "0.000000", state="not_charged")
    assert owner.balance_micros == 100_000_000


def test_c06_two_owners_may_use_the_same_id(owner: Owner):
    other = makers.make_owner()
    order = makers.order(id="the-same-id")
    assert makers.post(owner, order).status_code == 201
    assert makers.post(other, {**order, "prompt": "quite another"}).status_code == 201
    assert makers.get(owner, "the-same-id").json()["prompt"] == order["prompt"]
    assert makers.get(other, "the-same-id").json()["prompt"] == "quite another"
    assert VideoTask.objects.count() == 2
    assert (owner.balance_micros, other.balance_micros) == (95_840_000, 95_840_000)
