"""C18: one truth in every view. (The admin's view is tested with the admin.)"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from billing import operations as billing
from tests import makers
from tests.makers import Owner
from videos import desk

pytestmark = pytest.mark.django_db
SHARED = (
    *("id", "state", "submission_state", "phase", "progress", "model", "prompt", "seconds", "resolution"),
    *("charge", "message", "error", "cancel", "result", "late", "chips", "accepted_at", "finished_at"),
)


def completed(owner: Owner) -> str:
    client_id = makers.submit(owner)
    makers.work()
    return client_id


def cheaper_than_ordered(owner: Owner) -> str:
    client_id = makers.submit(owner, prompt="a cat [sim: units=3]")
    makers.work()
    return client_id


def failed_by_the_provider(owner: Owner) -> str:
    client_id = makers.submit(owner, prompt='a cat [sim: fail="no"]')
    makers.work()
    return client_id


def refused_prompt(owner: Owner) -> str:
    client_id = makers.submit(owner, prompt="a cat [sim: refuse=422 error_type=content_policy_violation]")
    makers.work()
    return client_id


def withheld_output(owner: Owner) -> str:
    client_id = makers.submit(owner, prompt="a cat [sim: refused_output billed]")
    makers.work()
    return client_id


def cancelled_before_it_was_sent(owner: Owner) -> str:
    client_id = makers.submit(owner)
    assert owner.api.post(f"/api/videos/{client_id}/cancel").status_code == 200
    return client_id


def cancelled_while_running(owner: Owner) -> str:
    client_id = makers.submit(owner, prompt="a cat [sim: run_forever cancel=obey webhook_none]")
    makers.work_once()
    assert owner.api.post(f"/api/videos/{client_id}/cancel").status_code == 202
    makers.work()
    return client_id


def given_up_after_a_day(owner: Owner) -> str:
    client_id = makers.submit(owner, prompt="a cat [sim: drop_before_accept]")
    makers.work()
    makers.age([client_id], first_unclear_at=timedelta(days=2))
    makers.work()
    return client_id


def closed_by_support_and_given_late(owner: Owner) -> str:
    client_id = makers.submit(owner, prompt="a cat [sim: webhook_none]")
    makers.work_once()
    desk.fail_and_refund(
        task_id=makers.task_of(owner, client_id).pk, actor="sam", reason="asked for", now=timezone.now()
    )
    makers.work()
    return client_id


def completed_with_goodwill(owner: Owner) -> str:
    client_id = completed(owner)
    billing.give_goodwill(
        charge_id=makers.task_of(owner, client_id).pk,
        amount_micros=1_000_000,
        returned_shown_micros=0,
        reference="goodwill-1",
        actor="sam",
        reason="it was late",
        now=timezone.now(),
    )
    return client_id


def not_enough_money(owner: Owner) -> str:
    document = makers.order()
    billing_before = owner.balance_micros
    for _ in range(billing_before // makers.PRICE_MICROS):
        makers.submit(owner, prompt='[sim: fail="no"] to spend the balance')
    assert makers.post(owner, document).status_code == 402
    makers.work()
    return str(document["id"])


# how it ends → state, charge.state, message, returned
ENDS: dict[Callable[[Owner], str], tuple[str, str, str, str]] = {
    completed: ("completed", "settled", "completed", "0.000000"),
    cheaper_than_ordered: ("completed", "partially_refunded", "completed_less_used", "2.600000"),
    failed_by_the_provider: ("failed", "refunded", "provider_failed", "4.160000"),
    refused_prompt: ("failed", "refunded", "prompt_refused", "4.160000"),
    withheld_output: ("failed", "refunded", "output_withheld", "4.160000"),
    cancelled_before_it_was_sent: ("failed", "refunded", "cancelled", "4.160000"),
    cancelled_while_running: ("failed", "refunded", "cancelled", "4.160000"),
    given_up_after_a_day: ("failed", "refunded", "time_limit", "4.160000"),
    closed_by_support_and_given_late: ("failed", "refunded", "late_result_given", "4.160000"),
    completed_with_goodwill: ("completed", "partially_refunded", "completed_goodwill", "1.000000"),
    not_enough_money: ("failed", "not_charged", "insufficient_balance", "0.000000"),
}


def shared(task: dict[str, Any]) -> dict[str, Any]:
    return {name: task[name] for name in SHARED}


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_api_list_ids_page_and_statement_say_the_same(
    simulator: Any, end: Callable[[Owner], str], language: str
) -> None:
    owner = makers.make_owner(balance="10")
    client_id = end(owner)
    speak = {"accept-language": language}
    task = owner.api.get(f"/api/videos/{client_id}", headers=speak).json()
    state, money, message, returned = ENDS[end]
    assert (task["state"], task["charge"]["state"], task["charge"]["refunded"]) == (state, money, returned)
    assert task["message"]["code"] == message
    assert task["submission_state"] in ("accepted", "rejected")
    listed = owner.api.get("/api/videos", headers=speak).json()["results"]
    assert [shared(row) for row in listed if row["id"] == client_id] == [shared(task)]
    group = "ready" if state == "completed" else "failed"
    grouped = owner.api.get(f"/api/videos?state={group}", headers=speak).json()["results"]
    assert client_id in [row["id"] for row in grouped]
    (by_id,) = owner.api.get(f"/api/videos?ids={client_id}", headers=speak).json()["results"]
    assert shared(by_id) == shared(task)
    assert_pages_say(owner, task, speak)
    assert_statement_says(owner, task)


def assert_pages_say(owner: Owner, task: dict[str, Any], speak: dict[str, str]) -> None:
    browser = Client(headers=speak)
    browser.force_login(owner.user)
    index = browser.get("/videos/")
    (card,) = [card for card in index.context["finished"] if card["id"] == task["id"]]
    assert shared(card) == shared(task)
    detail = browser.get(f"/videos/{task['id']}/")
    assert shared(detail.context["task"]) == shared(task)
    for page in (index, detail):
        assert task["message"]["text"] in _plain(page.content.decode())


def _plain(page: str) -> str:
    return page.replace("&#x27;", "'").replace("&amp;", "&").replace("&quot;", '"')


def assert_statement_says(owner: Owner, task: dict[str, Any]) -> None:
    """What the ledger moved for this task is what the task says of its money."""
    lines = owner.api.get("/api/account/transfers?limit=100").json()["results"]
    mine = [line for line in lines if line["task"] == task["id"]]
    out = sum(_micros(line["amount"]) for line in mine if line["direction"] == "out")
    back = sum(_micros(line["amount"]) for line in mine if line["direction"] == "in")
    charge = task["charge"]
    assert (out, back) == (_micros(charge["amount"]), _micros(charge["refunded"]))
    assert _micros(lines[0]["balance_after"]) == owner.balance_micros
    account = owner.api.get("/api/account").json()
    assert _micros(account["balance"]) == owner.balance_micros


def _micros(amount: str) -> int:
    return int(amount.replace(".", ""))


def test_the_money_of_a_deleted_video_is_told_from_the_ledger_goodwill_included(
    owner: Owner, simulator: Any
) -> None:
    client_id = completed(owner)
    charge_id = makers.task_of(owner, client_id).pk
    owner.api.delete(f"/api/videos/{client_id}")
    billing.give_goodwill(
        charge_id=charge_id,
        amount_micros=500_000,
        returned_shown_micros=0,
        reference="goodwill-2",
        actor="sam",
        reason="afterwards",
        now=timezone.now(),
    )
    gone = makers.get(owner, client_id).json()
    (entry,) = owner.api.get(f"/api/videos?ids={client_id}").json()["results"]
    assert gone["charge"] == entry["charge"]
    assert (gone["charge"]["state"], gone["charge"]["refunded"]) == ("partially_refunded", "0.500000")
    assert gone["message"] == entry["message"]
