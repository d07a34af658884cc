"""GET /api/account and /api/account/transfers: the money, and each movement of it."""

from typing import Any

import pytest
from django.utils import timezone

from billing import operations as billing
from tests import makers
from tests.api.answers import assert_problem
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def account(owner: Owner) -> dict[str, str]:
    answer = owner.api.get("/api/account")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    document: dict[str, str] = answer.json()
    return document


def transfers(owner: Owner, **query: str) -> dict[str, Any]:
    answer = owner.api.get("/api/account/transfers", query)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    document: dict[str, Any] = answer.json()
    return document


def test_a_newcomer_has_nothing():
    newcomer = makers.make_owner(balance="0")
    assert account(newcomer) == {"balance": "0.000000", "held": "0.000000", "currency": "USDC"}
    assert transfers(newcomer) == {"results": [], "next_cursor": None}


def test_what_is_held_is_not_in_the_balance(owner: Owner, simulator: Any):
    makers.submit(owner)
    assert account(owner) == {"balance": "95.840000", "held": "4.160000", "currency": "USDC"}
    makers.work()
    assert account(owner) == {"balance": "95.840000", "held": "0.000000", "currency": "USDC"}


def test_money_of_a_failed_video_is_back(owner: Owner, simulator: Any):
    makers.submit(owner, prompt='a [sim: fail="no"]')
    makers.work()
    assert account(owner) == {"balance": "100.000000", "held": "0.000000", "currency": "USDC"}


def test_the_statement_is_newest_first_with_the_balance_after_each(owner: Owner, simulator: Any):
    made = makers.submit(owner)
    makers.work()
    lost = makers.submit(owner, prompt='a [sim: fail="no"]')
    makers.work()
    billing.give_goodwill(
        charge_id=makers.view(owner, made).claim.pk,
        amount_micros=160_000,
        returned_shown_micros=0,
        reference="sorry",
        actor="support",
        reason="a scratch",
        now=timezone.now(),
    )
    lines = transfers(owner)["results"]
    assert [
        (line["kind"], line["direction"], line["amount"], line["balance_after"], line["task"])
        for line in lines
    ] == [
        ("goodwill", "in", "0.160000", "96.000000", made),
        ("refund", "in", "4.160000", "95.840000", lost),
        ("charge", "out", "4.160000", "91.680000", lost),
        ("settle", "none", "4.160000", "95.840000", made),
        ("charge", "out", "4.160000", "95.840000", made),
        ("top_up", "in", "100.000000", "100.000000", None),
    ]
    assert set(lines[0]) == {
        *("id", "kind", "amount", "direction", "task", "reference", "balance_after", "created_at")
    }
    assert account(owner)["balance"] == lines[0]["balance_after"]


def test_pages_of_the_statement_carry_the_same_balances(owner: Owner):
    for number in range(5):
        makers.top_up(owner.user, f"{number + 1}")
    whole = transfers(owner)["results"]
    pages, following = [], ""
    while following is not None:
        page = transfers(owner, limit="2", cursor=following)
        pages += page["results"]
        following = page["next_cursor"]
    assert pages == whole
    assert [line["balance_after"] for line in whole] == [
        *("115.000000", "110.000000", "106.000000", "103.000000", "101.000000", "100.000000")
    ]


def test_a_statement_shows_nothing_of_a_stranger(owner: Owner):
    makers.submit(makers.make_owner())
    assert [line["kind"] for line in transfers(owner)["results"]] == ["top_up"]


def test_the_statement_keeps_its_lines_when_a_task_is_deleted(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    makers.work()
    before = transfers(owner)
    owner.api.delete(f"/api/videos/{client_id}")
    assert transfers(owner) == before


@pytest.mark.parametrize(
    ("query", "field"), [({"limit": "0"}, "limit"), ({"cursor": "x"}, "cursor"), ({"limit": "x"}, "limit")]
)
def test_a_bad_page_is_refused_by_name(owner: Owner, query: dict[str, str], field: str):
    assert_problem(owner.api.get("/api/account/transfers", query), 400, "invalid", field=field)


def test_account_and_held_sum_come_from_one_statement(owner: Owner, django_assert_num_queries: Any):
    account(owner)
    with django_assert_num_queries(2):  # the token, the money
        account(owner)
