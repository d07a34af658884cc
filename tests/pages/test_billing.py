"""The billing page says what the ledger says."""

from typing import Any

from django.test import Client
from django.utils import timezone

from billing.models import Transfer
from tests import makers
from tests.makers import Owner
from tests.pages.conftest import sign_in
from tests.pages.reading import get
from videos import deletion


def test_figures_and_statement_equal_the_ledger(client: Client, owner: Owner, simulator: Any) -> None:
    makers.submit(owner, prompt="ready", seconds=4, audio=False)
    makers.submit(owner, prompt='failed [sim: fail="internal error"]')
    makers.work()
    makers.submit(owner, prompt="running", seconds=6)

    text = get(client, "/billing/").text

    assert owner.balance_micros == 95_840_000
    assert "Available 95.84 USDC" in text
    assert "Held 3.12 USDC 1 running video " in text
    assert "Spent this month 4.16 USDC 4.16 returned" in text
    statement = text.partition("Statement")[2]
    assert statement.count("Charged for a video") == 1
    assert statement.count("Held for a video") == 2  # the one that runs, and the one that came back
    assert statement.count("Returned") == 1
    assert statement.count("Money added") == 1


def test_a_charge_of_a_finished_video_is_one_line_and_balances_run_backwards(
    client: Client, owner: Owner, simulator: Any
) -> None:
    makers.submit(owner, prompt="ready")
    makers.work()
    assert Transfer.objects.count() == 3  # top-up, charge, settlement

    statement = get(client, "/billing/").text.partition("Balance after")[2]

    assert statement.count("Charged for a video") == 1
    assert statement.index("−4.16 95.84") < statement.index("+100.00 100.00")


def test_a_deleted_video_keeps_its_line_without_a_link(client: Client, owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt="ready")
    makers.work()
    assert f"/videos/{client_id}/" in get(client, "/billing/").links

    deletion.delete_task(owner_id=owner.id, client_id=client_id, now=timezone.now())

    page = get(client, "/billing/")
    assert f"/videos/{client_id}/" not in page.links
    assert "Charged for a video deleted −4.16 95.84" in page.text


def test_a_new_person_sees_zeros_and_how_money_is_added(db: None) -> None:
    text = get(sign_in(makers.make_owner(balance="0")), "/billing/").text

    assert "Available 0.00 USDC Held 0.00 USDC no running videos Spent this month 0.00 USDC" in text
    assert "No movements yet. Money is added by our staff" in text


def test_older_movements_show_every_line_once_and_nobody_elses(client: Client, owner: Owner) -> None:
    for number in range(1, 61):
        makers.top_up(owner.user, f"{number}.5")
    stranger = makers.make_owner(balance="98765")
    makers.submit(stranger, prompt="theirs")

    first = get(client, "/billing/")
    (older,) = [link for link in first.links if "cursor=" in link]
    second = get(client, f"/billing/{older}")

    assert (first.text.count("Money added"), second.text.count("Money added")) == (50, 11)
    assert [link for link in second.links if "cursor=" in link] == []
    assert "+60.50" in first.text and "+10.50" not in first.text
    assert "+10.50" in second.text and "+100.00 100.00" in second.text
    assert "98,765" not in first.text + second.text


def test_the_statement_speaks_chinese(client: Client, owner: Owner, simulator: Any) -> None:
    makers.submit(owner, prompt="一")
    makers.work()
    client.cookies["django_language"] = "zh-hans"

    text = get(client, "/billing/").text

    assert "视频扣费" in text and "充值" in text
    for english in ("Charged", "Held", "Returned", "Money", "Available"):
        assert english not in text


def test_billing_needs_a_sign_in(db: None) -> None:
    answer = Client().get("/billing/")

    assert (answer.status_code, answer["Location"]) == (302, "/accounts/login/?next=/billing/")
