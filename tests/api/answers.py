"""What the API promises of every refusal, and that a refusal changed nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps

from billing.models import Account
from tests.makers import Owner

OUR_APPS = ("accounts", "tombstones", "billing", "files", "videos")
CHINESE = {"accept-language": "zh-hans"}
NOTHING_CHARGED = {"state": "not_charged", "amount": "0.000000", "refunded": "0.000000", "currency": "USDC"}
CHANGED_NOTHING = "this request changed nothing."
CHANGED_NOTHING_CHINESE = "本次请求没有产生任何变化"


def snapshot() -> dict[str, Any]:
    """How many rows each table has, and every balance."""
    counts: dict[str, Any] = {
        model._meta.db_table: model._base_manager.count()
        for model in apps.get_models()
        if model._meta.app_label in OUR_APPS
    }
    return {**counts, "balances": dict(Account.objects.values_list("pk", "balance_micros"))}


@contextmanager
def nothing_changes() -> Iterator[None]:
    before = snapshot()
    yield
    assert snapshot() == before


def assert_problem(response: Any, status: int, code: str, **members: Any) -> dict[str, Any]:
    """The document of a refusal; `members` are what it must have besides."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    assert response["Cache-Control"] == "no-store"
    document: dict[str, Any] = response.json()
    assert document["type"].endswith(f"/errors/#{code}")
    assert document["status"] == status
    assert document["code"] == code
    assert document["title"].strip()
    assert document["detail"] == document["message"]["text"]
    assert document["request_id"] == response["X-Request-Id"]
    assert {name: document.get(name) for name in members} == members
    return document


def charged(owner: Owner, amount: str, state: str = "charged", refunded: str = "0.000000") -> dict[str, str]:
    return {"state": state, "amount": amount, "refunded": refunded, "currency": "USDC"}
