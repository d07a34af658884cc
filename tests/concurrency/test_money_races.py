"""Many requests for the same money at once: balances, limits, prices, top-ups and goodwill stay exact."""

from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from accounts import operations as accounts
from billing import operations as billing
from billing.errors import GoodwillStale, LimitReached, NotResolvable, ReferenceReused
from billing.models import Account, Charge, PriceVersion, Transfer
from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import Call, Held, kinds_of, race, run_sql, scratch_tables
from tests.concurrency.submissions import held_submit
from tombstones.models import Claim
from videos import operations
from videos.models import VideoTask

pytestmark = [pytest.mark.django_db(transaction=True)]
needs_row_locks = pytest.mark.postgresql
PRICE = makers.PRICE_MICROS


def submit(owner: makers.Owner, **fields: Any) -> Any:
    document = makers.order(**fields)
    return operations.submit_video(owner_id=owner.id, fields=document, token=None, now=timezone.now())


# --- the last money (C30) ---------------------------------------------------------------------------


def test_of_fifty_requests_with_money_for_one_exactly_one_is_accepted(simulator: Any) -> None:
    owner = makers.make_owner(balance="4.16")
    ids = [makers.new_client_id() for _ in range(50)]

    def post_five(first: int) -> list[int]:
        return [makers.post(owner, makers.order(id=ids[first + i])).status_code for i in range(5)]

    answers = race(*[lambda first=first: post_five(first) for first in range(0, 50, 5)])
    assert sorted(status for part in answers for status in part) == [201] + [402] * 49
    assert owner.balance_micros == 0
    assert (Charge.objects.count(), Claim.objects.count(), VideoTask.objects.count()) == (1, 50, 50)
    makers.work()
    assert simulator.count() == simulator.posts() == 1
    states = {makers.task_of(owner, client_id).state for client_id in ids}
    assert states == {"completed", "failed"}
    makers.top_up(owner.user, "100")
    assert [makers.post(owner, makers.order(id=client_id)).status_code for client_id in ids].count(402) == 49
    assert owner.balance_micros == 100_000_000
    assert_books_balance()


@needs_row_locks
def test_a_balance_that_is_read_and_then_written_pays_for_two() -> None:
    """The guard removed: without `UPDATE … WHERE balance >= price`, both see the money of one."""
    with scratch_tables(
        "CREATE TABLE scratch_account (balance bigint)", "INSERT INTO scratch_account VALUES (10)"
    ):

        def take() -> int:
            seen = int(run_sql("SELECT balance FROM scratch_account")[0][0])
            if seen < 10:
                raise AssertionError("not enough")
            run_sql("UPDATE scratch_account SET balance = %s", [seen - 10])
            return seen

        def take_in_a_transaction() -> int:
            with transaction.atomic():
                return take()

        first = Held(take)
        second = Call(take_in_a_transaction)
        second.wait_until_it_waits_for_a_lock()
        first.commit()
        assert second.result() == 10  # paid twice with the same ten
        assert run_sql("SELECT balance FROM scratch_account") == [(0,)]


def test_a_refused_request_stays_refused_after_a_top_up() -> None:
    owner, client_id = makers.make_owner(balance="1"), makers.new_client_id()
    assert makers.post(owner, makers.order(id=client_id)).status_code == 402
    makers.top_up(owner.user, "100")
    duplicates = race(*[lambda: makers.post(owner, makers.order(id=client_id))] * 4)
    assert [answer.status_code for answer in duplicates] == [402] * 4
    assert (Charge.objects.count(), owner.balance_micros) == (0, 101_000_000)
    assert_books_balance()


@needs_row_locks
def test_a_refusal_that_is_rolled_back_whole_lets_a_late_duplicate_spend_the_top_up() -> None:
    """The guard removed: without the savepoint after the claim, nothing remembers the refusal."""
    with scratch_tables(
        "CREATE TABLE scratch_claim (client_id text PRIMARY KEY)",
        "CREATE TABLE scratch_account (balance bigint)",
        "INSERT INTO scratch_account VALUES (1)",
    ):

        def submit_without_savepoint() -> str:
            with transaction.atomic():
                run_sql("INSERT INTO scratch_claim VALUES ('T')")
                taken = run_sql(
                    "UPDATE scratch_account SET balance = balance - 10 WHERE balance >= 10 RETURNING balance"
                )
                if not taken:
                    transaction.set_rollback(True)
                    return "402"
            return "charged"

        assert submit_without_savepoint() == "402"
        run_sql("UPDATE scratch_account SET balance = balance + 100")
        assert submit_without_savepoint() == "charged"  # the client was told "not charged" for this very id


# --- owners, accounts, limits -----------------------------------------------------------------------


def test_two_owners_who_pick_the_same_id_neither_see_nor_block_each_other() -> None:
    ann, bob = makers.make_owner(), makers.make_owner()
    client_id = makers.new_client_id()
    answers = race(
        lambda: makers.post(ann, makers.order(id=client_id, prompt="a cat")),
        lambda: makers.post(bob, makers.order(id=client_id, prompt="a dog")),
    )
    assert [answer.status_code for answer in answers] == [201, 201]
    assert makers.get(ann, client_id).json()["prompt"] == "a cat"
    assert makers.get(bob, client_id).json()["prompt"] == "a dog"
    assert (ann.balance_micros, bob.balance_micros) == (100_000_000 - PRICE, 100_000_000 - PRICE)
    assert_books_balance()


@needs_row_locks
def test_an_owner_does_not_wait_for_another_owners_same_id() -> None:
    ann, bob = makers.make_owner(), makers.make_owner()
    client_id = makers.new_client_id()
    under_way = held_submit(ann, client_id)
    assert Call(lambda: submit(bob, id=client_id)).result().is_new
    under_way.commit()
    assert Charge.objects.count() == 2
    assert_books_balance()


def test_the_limit_of_running_videos_holds_against_twenty_at_once() -> None:
    owner = makers.make_owner()
    Account.objects.filter(pk=owner.id).update(in_flight_limit=3)
    outcomes = race(*[lambda: submit(owner)] * 20)
    assert kinds_of(outcomes) == ["LimitReached"] * 17 + ["ok"] * 3
    assert (Charge.objects.count(), Claim.objects.count()) == (3, 3)  # a refusal by a limit leaves no row
    assert owner.balance_micros == 100_000_000 - 3 * PRICE
    assert_books_balance()


def test_the_daily_limits_of_an_owner_and_of_a_token_hold_against_ten_at_once() -> None:
    owner = makers.make_owner()
    Account.objects.filter(pk=owner.id).update(daily_spend_limit_micros=5 * PRICE)
    type(owner.token).objects.filter(pk=owner.token.pk).update(daily_spend_limit_micros=2 * PRICE)
    answers = race(*[lambda: makers.post(owner, makers.order())] * 10)
    assert sorted(answer.status_code for answer in answers) == [201] * 2 + [409] * 8
    outcomes = race(*[lambda: submit(owner)] * 10)  # without the token, only the owner's limit is left
    assert kinds_of(outcomes) == ["LimitReached"] * 7 + ["ok"] * 3
    assert all(isinstance(item, LimitReached) for item in outcomes if isinstance(item, Exception))
    assert owner.balance_micros == 100_000_000 - 5 * PRICE
    assert_books_balance()


def test_an_account_opened_by_many_at_once_is_one_account_with_all_the_money() -> None:
    user = accounts.create_user(username="newcomer", password="correct horse")
    outcomes = race(
        *[
            lambda number=number: billing.top_up(
                owner_id=user.pk,
                amount_micros=1_000_000,
                reference=f"first-{number}",
                actor="tests",
                now=timezone.now(),
            )
            for number in range(8)
        ]
    )
    assert outcomes == [True] * 8
    assert Account.objects.get(pk=user.pk).balance_micros == 8_000_000
    assert_books_balance()


def test_the_same_top_up_eight_times_at_once_adds_money_once() -> None:
    owner = makers.make_owner(balance="0")

    def top_up() -> bool:
        return billing.top_up(
            owner_id=owner.id, amount_micros=7, reference="bank-1", actor="tests", now=timezone.now()
        )

    assert sorted(race(*[top_up] * 8)) == [False] * 7 + [True]
    assert owner.balance_micros == 7
    assert_books_balance()


def test_one_reference_for_two_owners_at_once_reaches_one_of_them() -> None:
    owners = [makers.make_owner(balance="0"), makers.make_owner(balance="0")]
    outcomes = race(
        *[
            lambda owner=owner: billing.top_up(
                owner_id=owner.id, amount_micros=7, reference="bank-2", actor="tests", now=timezone.now()
            )
            for owner in owners
        ]
    )
    assert kinds_of(outcomes) == ["ReferenceReused", "ok"]
    assert any(isinstance(item, ReferenceReused) for item in outcomes)
    assert sorted(owner.balance_micros for owner in owners) == [0, 7]
    assert_books_balance()


# --- goodwill and prices ----------------------------------------------------------------------------


def settled_charge(owner: makers.Owner, simulator: Any) -> Charge:
    client_id = makers.submit(owner)
    makers.work()
    assert makers.task_of(owner, client_id).state == "completed"
    return Charge.objects.get()


def test_goodwill_from_six_forms_at_once_is_given_once(simulator: Any) -> None:
    owner = makers.make_owner()
    charge = settled_charge(owner, simulator)

    def give(number: int) -> bool:
        return billing.give_goodwill(
            charge_id=charge.pk,
            amount_micros=PRICE - 1,
            returned_shown_micros=0,
            reference=f"goodwill-{number}",
            actor="support",
            reason="a late video",
            now=timezone.now(),
        )

    outcomes = race(*[lambda number=number: give(number) for number in range(6)])
    assert kinds_of(outcomes) == ["GoodwillStale"] * 5 + ["ok"]
    assert all(isinstance(item, GoodwillStale) for item in outcomes if item is not True)
    assert owner.balance_micros == 100_000_000 - 1
    with pytest.raises(NotResolvable):  # a form that shows the right sum cannot pass the charge either
        billing.give_goodwill(
            charge_id=charge.pk, amount_micros=2, returned_shown_micros=PRICE - 1, reference="goodwill-7",
            actor="support", reason="more", now=timezone.now(),
        )  # fmt: skip
    assert owner.balance_micros == 100_000_000 - 1
    assert_books_balance()


def test_the_same_goodwill_form_sent_four_times_at_once_is_given_once(simulator: Any) -> None:
    owner = makers.make_owner()
    charge = settled_charge(owner, simulator)

    def give() -> bool:
        return billing.give_goodwill(
            charge_id=charge.pk, amount_micros=5, returned_shown_micros=0, reference="form-1",
            actor="support", reason="sorry", now=timezone.now(),
        )  # fmt: skip

    assert sorted(race(*[give] * 4)) == [False, False, False, True]
    assert owner.balance_micros == 100_000_000 - PRICE + 5
    assert Transfer.objects.filter(kind="goodwill").count() == 1
    assert_books_balance()


def test_a_price_changed_while_orders_come_in_charges_each_what_its_version_says() -> None:
    owner = makers.make_owner(balance="1000")
    version = PriceVersion.objects.get(
        model=makers.MODEL, resolution="720p", audio=True, valid_to__isnull=True
    )

    def raise_price() -> None:
        for step in range(1, 4):
            billing.set_price(
                model=version.model,
                resolution=version.resolution,
                audio=version.audio,
                unit=version.unit,
                provider_micros=version.provider_micros + step,
                markup=version.markup,
                now=timezone.now(),
            )

    def order_some() -> list[Any]:
        return [submit(owner, max_price="4.16") for _ in range(3)]

    def order_until_refused() -> str:
        try:
            order_some()
        except Exception as refusal:
            return type(refusal).__name__
        return "ok"

    answers = race(raise_price, *[order_until_refused] * 4)
    assert set(answers[1:]) <= {"ok", "PriceChanged"}
    for charge in Charge.objects.select_related("price_version"):
        assert charge.unit_price_micros == charge.price_version.unit_price_micros
        assert charge.amount_micros == charge.unit_price_micros * charge.quantity
        assert charge.amount_micros <= (charge.max_price_micros or 0)
    assert PriceVersion.objects.filter(model=version.model, resolution="720p", audio=True).count() == 4
    assert_books_balance()
