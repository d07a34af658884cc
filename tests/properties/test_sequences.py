"""Any sequence of requests on few ids leaves the ids and the money as a plain model says."""

from typing import Any

import pytest
from django.db.models import Sum
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import Phase as HypothesisPhase
from hypothesis import strategies as st

from billing import operations as billing
from billing.errors import NotResolvable
from billing.models import Charge, Resolution, Transfer
from core import audit
from core.money import to_amount
from tests import makers
from tests.makers import Owner
from tests.properties.model import PRICE_MICROS, Model, Phase
from tombstones.models import Claim
from videos.models import VideoTask
from videos.queries import view_of

pytestmark = pytest.mark.django_db

IDS = 3
START = "9"  # enough for two videos, so that some orders are refused
ids = st.integers(0, IDS - 1)
STEPS = st.one_of(
    st.tuples(st.just("submit"), ids, st.integers(0, 1)),
    st.tuples(st.just("submit"), ids, st.integers(0, 1)),
    st.tuples(st.just("abandon"), ids),
    st.tuples(st.just("delete"), ids),
    st.tuples(st.just("cancel"), ids),
    st.tuples(st.just("goodwill"), ids, st.sampled_from([1, PRICE_MICROS // 2, PRICE_MICROS])),
    st.tuples(st.just("top_up"), st.sampled_from([1, PRICE_MICROS, 3 * PRICE_MICROS])),
    st.tuples(st.just("work")),
)


class Product:
    """The product as one owner uses it: each method is a step of the model."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.key = makers.new_client_id()
        self.given = 0

    def id(self, number: int) -> str:
        return f"{self.key}-{number}"

    def submit(self, number: int, body: int) -> int:
        prompt = f'number {number} [sim: fail="no"]' if body % 2 else f"number {number}"
        status: int = makers.post(self.owner, makers.order(id=self.id(number), prompt=prompt)).status_code
        return status

    def act(self, number: int, verb: str) -> int:
        status: int = self.owner.api.post(f"/api/videos/{self.id(number)}/{verb}").status_code
        return status

    def delete(self, number: int) -> int:
        status: int = self.owner.api.delete(f"/api/videos/{self.id(number)}").status_code
        return status

    def give_goodwill(self, number: int, micros: int) -> bool:
        view = view_of(owner_id=self.owner.id, client_id=self.id(number))
        self.given += 1
        try:
            return view is not None and billing.give_goodwill(
                charge_id=view.claim.pk,
                amount_micros=micros,
                returned_shown_micros=view.returned_micros,
                reference=f"{self.key}-{self.given}",
                actor="support",
                reason="a test",
                now=timezone.now(),
            )
        except NotResolvable:
            return False


def take_step(product: Product, model: Model, step: tuple[Any, ...]) -> None:
    match step:
        case ("submit", number, body):
            assert product.submit(number, body) == model.submit(number, body)
        case ("abandon", number):
            assert product.act(number, "abandon") == model.abandon(number)
        case ("cancel", number):
            assert product.act(number, "cancel") == model.cancel(number)
        case ("delete", number):
            assert product.delete(number) == model.delete(number)
        case ("goodwill", number, micros):
            assert product.give_goodwill(number, micros) == model.give_goodwill(number, micros)
        case ("top_up", micros):
            makers.top_up(product.owner.user, to_amount(micros))
            model.top_up(micros)
        case ("work",):
            makers.work(2)
            model.work()
    assert product.owner.balance_micros == model.balance_micros, step


def assert_as_modelled(product: Product, model: Model) -> None:
    owner = product.owner
    account = owner.api.get("/api/account").json()
    assert account["balance"] == to_amount(model.balance_micros)
    assert account["held"] == to_amount(model.held_micros)
    for number in range(IDS):
        answer = makers.get(owner, product.id(number))
        assert answer.status_code == model.get(number)
        entry = model.entries.get(number)
        if entry is not None:
            charge = answer.json()["charge"]
            is_returned = entry.charged_micros and not entry.is_settled and entry.phase is not Phase.WAITING
            returned = entry.charged_micros if is_returned else entry.given_micros
            assert charge["amount"] == to_amount(entry.charged_micros)
            assert charge["refunded"] == to_amount(returned)
    live = {n for n, entry in model.entries.items() if entry.phase not in (Phase.DELETED, Phase.ABANDONED)}
    listed = [task["id"] for task in owner.api.get("/api/videos").json()["results"]]
    assert sorted(listed) == sorted(product.id(number) for number in live)


def assert_ledger(product: Product, model: Model) -> None:
    """The rows themselves: the ledger sums up, and nothing exists twice."""
    owner_id = product.owner.id
    transfers = Transfer.objects.filter(owner_id=owner_id)
    came = transfers.filter(credit="owner").aggregate(sum=Sum("amount_micros"))["sum"] or 0
    went = transfers.filter(debit="owner").aggregate(sum=Sum("amount_micros"))["sum"] or 0
    assert came - went == model.balance_micros >= 0
    into = transfers.filter(credit="clearing").aggregate(sum=Sum("amount_micros"))["sum"] or 0
    out = transfers.filter(debit="clearing").aggregate(sum=Sum("amount_micros"))["sum"] or 0
    assert into - out == model.held_micros
    assert Claim.objects.filter(owner_id=owner_id).count() == len(model.entries)
    assert Charge.objects.filter(owner_id=owner_id).count() == model.charges
    assert transfers.filter(kind="charge").count() == model.charges
    unfinished = VideoTask.objects.filter(owner_id=owner_id, finished_at__isnull=True).count()
    resolved = Resolution.objects.filter(charge__owner_id=owner_id).count()
    assert resolved + unfinished == model.charges


@settings(
    max_examples=20,  # each drives real workers and a real provider
    deadline=None,
    derandomize=True,
    phases=[HypothesisPhase.explicit, HypothesisPhase.generate],  # shrinking would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=4, max_size=12))
@example(steps=[("submit", 0, 0), ("work",), ("delete", 0), ("submit", 0, 0), ("goodwill", 0, PRICE_MICROS)])
@example(
    steps=[("submit", 0, 0), ("submit", 1, 1), ("submit", 2, 0), ("top_up", PRICE_MICROS), ("submit", 2, 0)]
)
@example(steps=[("submit", 0, 1), ("cancel", 0), ("work",), ("submit", 0, 1), ("delete", 0), ("cancel", 0)])
@example(steps=[("abandon", 0), ("submit", 0, 0), ("delete", 0), ("cancel", 0), ("abandon", 0), ("work",)])
def test_any_sequence_leaves_ids_and_money_as_modelled(simulator: Any, steps: list[tuple[Any, ...]]):
    owner = makers.make_owner(balance=START)
    product, model = Product(owner), Model(balance_micros=owner.balance_micros)
    jobs_before = simulator.count()
    for step in steps:
        take_step(product, model, step)
    assert_as_modelled(product, model)
    assert_ledger(product, model)
    assert simulator.count() - jobs_before == model.jobs
    take_step(product, model, ("work",))  # what was left waiting ends too, and leaves no later example to it
    assert model.held_micros == 0
    assert_ledger(product, model)
    assert simulator.count() - jobs_before == model.jobs
    assert [finding for finding in audit.findings() if finding.violations] == []


@settings(max_examples=200, deadline=None, derandomize=True)
@given(steps=st.lists(STEPS, max_size=40))
def test_the_model_itself_never_pays_twice_or_goes_below_zero(steps: list[tuple[Any, ...]]):
    """A model that allowed it would let the product do it too."""
    model = Model(balance_micros=9_000_000)
    paid_in = model.balance_micros
    for name, *values in steps:
        if name == "work":
            model.work()
        elif name == "top_up":
            model.top_up(*values)
            paid_in += values[0]
        else:
            getattr(model, {"goodwill": "give_goodwill"}.get(name, name))(*values)
        assert model.balance_micros >= 0
        assert all(entry.charged_micros in (0, PRICE_MICROS) for entry in model.entries.values())
    kept = sum(e.charged_micros - e.given_micros for e in model.entries.values() if e.is_settled)
    assert model.balance_micros + model.held_micros + kept == paid_in
