"""Compiled statements give what the ORM gives, and cut no number short."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection
from django.db.models import BigIntegerField, F, UUIDField

from billing.models import Account
from core import db
from core.statements import CompiledQuery, CompiledUpdate, Parameter, insert
from tests import makers
from tombstones.models import Claim
from videos import queries
from videos.models import ProviderStatus, VideoTask

pytestmark = [pytest.mark.django_db(transaction=True)]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNER = Parameter("owner", UUIDField())
ADD = CompiledUpdate(
    lambda: Account.objects.filter(pk=OWNER),
    balance_micros=F("balance_micros") + Parameter("amount", BigIntegerField()),
)
ACCOUNT = CompiledQuery(lambda: Account.objects.filter(pk=OWNER))


def account(**fields: Any) -> Account:
    return Account(owner_id=uuid.uuid4(), created_at=NOW, **fields)


@pytest.mark.parametrize("amount", [1, 2**15, 2**31 - 1, 2**31, 10**10, 2**33 + 5, 10**15])
def test_a_number_of_any_size_is_added_whole(amount: int) -> None:
    row = account()
    insert(row)
    for times in range(1, 5):  # the driver prepares a statement that it has seen before
        assert ADD.run(owner=row.pk, amount=amount) == 1
        assert Account.objects.get(pk=row.pk).balance_micros == times * amount
    assert ADD.run(owner=uuid.uuid4(), amount=amount) == 0


def test_numbers_of_different_sizes_in_turn_are_each_added_whole() -> None:
    row, sum_of_all = account(), 0
    insert(row)
    for amount in [5, 10**12, 70_000, 3 * 10**9, 1, 10**10] * 3:
        ADD.run(owner=row.pk, amount=amount)
        sum_of_all += amount
    assert Account.objects.get(pk=row.pk).balance_micros == sum_of_all


def test_the_orm_adds_a_large_amount_whole_too() -> None:
    """It would not, were its statements bound by the server; see Note [Bound by the server]."""
    owner = makers.make_owner(balance="0")
    makers.top_up(owner.user, "10000")
    assert owner.balance_micros == 10**10


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's integers have one size")
def test_a_number_too_large_for_its_column_is_refused_and_not_cut() -> None:
    with pytest.raises(DataError):
        insert(account(in_flight_limit=2**32 + 1))
    assert Account.objects.count() == 0


def test_an_inserted_row_is_the_row_that_the_orm_reads() -> None:
    row = account(in_flight_limit=3, daily_spend_limit_micros=10**12)
    insert(row)
    read = Account.objects.get(pk=row.pk)
    for field in Account._meta.concrete_fields:
        assert getattr(read, field.attname) == getattr(row, field.attname)
    assert row._state.adding is False
    with pytest.raises(IntegrityError):
        insert(row)


def test_a_row_is_updated_after_its_insert_by_save() -> None:
    row = ProviderStatus(provider="somebody", paused_seconds=1.5)
    insert(row)
    row.paused_seconds = 2.5
    row.save()
    assert ProviderStatus.objects.get().paused_seconds == 2.5


def test_a_compiled_query_reads_anew_each_time() -> None:
    row = account()
    assert ACCOUNT.first(owner=row.pk) is None
    with pytest.raises(LookupError):
        ACCOUNT.one(owner=row.pk)
    insert(row)
    assert ACCOUNT.one(owner=row.pk) == row
    assert ACCOUNT.first(owner=uuid.uuid4()) is None
    with pytest.raises(KeyError):
        ACCOUNT.all()


def test_a_failed_statement_leaves_the_next_ones_whole() -> None:
    row = account()
    insert(row)
    ADD.run(owner=row.pk, amount=5)

    @db.transaction
    def overdraw() -> None:
        with pytest.raises(IntegrityError), db.savepoint():
            ADD.run(owner=row.pk, amount=-6)
        ADD.run(owner=row.pk, amount=-2)

    for _ in range(2):
        overdraw()
    assert ACCOUNT.one(owner=row.pk).balance_micros == 1


def test_a_view_holds_what_the_orm_reads_of_claim_task_and_money() -> None:
    owner = makers.make_owner()
    client_id = makers.submit(owner, prompt="一只猫 [with brackets] and 100%", seed=7)
    for _ in range(4):
        view = queries.view_of(owner_id=owner.id, client_id=client_id)
        assert view is not None and view.task is not None and view.charge is not None
        read = VideoTask.objects.get(claim__client_id=client_id)
        for field in VideoTask._meta.concrete_fields:
            assert getattr(view.task, field.attname) == getattr(read, field.attname), field.name
        assert view.prompt == "一只猫 [with brackets] and 100%"
        assert view.claim == Claim.objects.get(client_id=client_id)
        assert (view.charge.amount_micros, view.resolution) == (makers.PRICE_MICROS, None)


def test_the_view_of_a_new_task_is_the_view_that_is_read_afterwards() -> None:
    owner = makers.make_owner()
    ordered = makers.post(owner, makers.order(id="just-ordered")).json()
    read = makers.get(owner, "just-ordered").json()
    assert ordered == read


def test_the_view_of_a_remembered_refusal_is_the_view_that_is_read_afterwards() -> None:
    owner = makers.make_owner(balance="1")
    refused = makers.post(owner, makers.order(id="too-expensive"))
    assert refused.status_code == 402
    assert refused.json()["task"] == makers.get(owner, "too-expensive").json()
