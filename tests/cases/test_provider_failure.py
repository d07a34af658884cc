"""C10: the provider fails the task."""

from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import kinds_of, state_of
from tests.makers import BLIND_MODEL, Owner

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [makers.MODEL, BLIND_MODEL])
def test_a_failure_told_by_the_provider_is_one_refund_and_keeps_its_reason(
    owner: Owner, simulator: Any, model: str
) -> None:
    prompt = 'a cat [sim: fail="The GPU caught fire."]'
    client_id = makers.submit(owner, model=model, prompt=prompt)
    makers.work()
    assert state_of(owner, client_id) == ("failed", "refunded", "provider_failed")
    task = makers.get(owner, client_id).json()
    assert task["error"]["detail"] == "The GPU caught fire."
    assert task["charge"] == {
        "state": "refunded",
        "amount": "4.160000",
        "refunded": "4.160000",
        "currency": "USDC",
    }
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    assert owner.balance_micros == 100_000_000
    makers.work(3)  # later rounds find nothing more to give back
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    assert (simulator.count(), simulator.jobs()[0]["billed"]) == (1, False)


def test_a_typed_refusal_at_the_submit_is_one_refund_and_no_job(owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt='a cat [sim: refuse=422 detail="no cats here"]')
    makers.work()
    assert state_of(owner, client_id)[:2] == ("failed", "refunded")
    assert makers.get(owner, client_id).json()["error"]["detail"] == "no cats here"
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    assert (owner.balance_micros, simulator.count(), simulator.posts()) == (100_000_000, 0, 1)


def test_a_refusal_of_our_own_account_fails_no_task(owner: Owner, simulator: Any) -> None:
    simulator.add_fault({"answer": 403}, times=1)
    both = [makers.submit(owner), makers.submit(owner)]
    makers.work_once()
    for client_id in both:
        assert state_of(owner, client_id)[:2] in (("submitting", "charged"), ("processing", "charged"))
    assert state_of(owner, both[0])[0] != "failed"
    assert owner.balance_micros == 100_000_000 - 2 * makers.PRICE_MICROS
