"""C28: money is exact, whatever the number of tasks."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, Sum
from django.utils import timezone

from billing import operations as billing
from billing import queries
from billing.kinds import Kind, Leg
from billing.models import Account, Charge, Resolution, Transfer
from billing.prices import Quote
from core import db
from core.ids import new_id
from core.money import to_amount
from tests import makers
from tests.makers import Owner
from tombstones.models import BurialReason, Claim, ClaimState
from videos.models import TaskEvent

pytestmark = pytest.mark.django_db
TASKS = 10_000
ONE_BY_ONE = 800  # of them through the operations; the rest as the rows that these write
AT_ONCE = 200  # in one transaction: updates of one row in one transaction grow ever slower
SEVEN_CENTS, TEN_CENTS = 70_000, 100_000  # micro-units


def prices() -> list[Quote]:
    now = timezone.now()
    for resolution, micros in (("720p", SEVEN_CENTS), ("1080p", TEN_CENTS)):
        billing.set_price(
            model="exact",
            resolution=resolution,
            audio=False,
            unit="video",
            provider_micros=micros,
            markup="1",
            now=now,
        )
    quotes = [
        queries.quote(model="exact", resolution=resolution, audio=False, seconds=8)
        for resolution in ("720p", "1080p")
    ]
    assert [quote.amount_micros for quote in quotes if quote] == [SEVEN_CENTS, TEN_CENTS]
    return [quote for quote in quotes if quote]


def claims_of(owner: Owner, amount: int) -> list[Claim]:
    now = timezone.now()
    claims = [
        Claim(id=new_id(), owner_id=owner.id, client_id=makers.new_client_id(), created_at=now)
        for _ in range(amount)
    ]
    return Claim.objects.bulk_create(claims)


def order_of(claim: Claim) -> billing.ChargeOrder:
    return billing.ChargeOrder(
        claim_id=claim.pk,
        owner_id=claim.owner_id,
        max_price_micros=None,
        charges_on_refusal=False,
        provider="fal",
        model="exact",
        token_id=None,
    )


@db.transaction
def charge_and_end(owner: Owner, quotes: list[Quote], numbers: range) -> None:
    """The money of as many tasks through the operations, one after the other, every third refunded."""
    now = timezone.now()
    claims = claims_of(owner, len(numbers))
    for number, claim in zip(numbers, claims, strict=True):
        quote = quotes[number % 2]
        billing.charge(order=order_of(claim), quote=quote, now=now)
        if number % 3 == 0:
            billing.refund(charge_id=claim.pk, cause="provider_failed", actor="tests", now=now)
        else:
            kept = quote.amount_micros
            billing.settle(charge_id=claim.pk, settled_micros=kept, cause="completed", actor="tests", now=now)
    bury(claims, numbers)


@db.transaction
def charge_and_end_in_bulk(owner: Owner, quotes: list[Quote], numbers: range) -> None:
    """The same rows in a few statements; the database's own guards judge each of them."""
    now = timezone.now()
    claims = claims_of(owner, len(numbers))
    charges, resolutions, transfers, balance = [], [], [], 0
    for number, claim in zip(numbers, claims, strict=True):
        quote, is_refunded = quotes[number % 2], number % 3 == 0
        amount = quote.amount_micros
        frozen = vars(order_of(claim)) | {
            "unit_price_micros": quote.unit_price_micros,
            "quantity": quote.quantity,
        }
        charge = Charge(
            **frozen, amount_micros=amount, price_version_id=quote.price_version_id, created_at=now
        )
        charges.append(charge)
        resolutions.append(
            Resolution(
                charge=charge,
                outcome="refunded" if is_refunded else "settled",
                settled_micros=0 if is_refunded else amount,
                returned_micros=amount if is_refunded else 0,
                cause="provider_failed" if is_refunded else "completed",
                actor="tests",
                created_at=now,
            )
        )
        end = (
            (Kind.REFUND, Leg.CLEARING, Leg.OWNER)
            if is_refunded
            else (Kind.SETTLE, Leg.CLEARING, Leg.REVENUE)
        )
        transfers += [
            Transfer(
                kind=kind,
                debit=debit,
                credit=credit,
                reference=str(claim.pk),
                amount_micros=amount,
                owner_id=owner.id,
                charge=charge,
                actor="tests",
                created_at=now,
            )
            for kind, debit, credit in ((Kind.CHARGE, Leg.OWNER, Leg.CLEARING), end)
        ]
        balance += 0 if is_refunded else amount
    Charge.objects.bulk_create(charges, batch_size=500)
    Resolution.objects.bulk_create(resolutions, batch_size=500)
    Transfer.objects.bulk_create(transfers, batch_size=500)
    Account.objects.filter(pk=owner.id).update(balance_micros=F("balance_micros") - balance)
    bury(claims, numbers)


def refresh_statistics() -> None:
    """As PostgreSQL does by itself in time; until then it takes the tables for empty and plans badly."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def bury(claims: list[Claim], numbers: range) -> None:
    """What is left of tasks that ended and were deleted."""
    now = timezone.now()
    ended = Claim.objects.filter(owner_id=claims[0].owner_id, state=ClaimState.LIVE)
    ended.update(state=ClaimState.BURIED, reason=BurialReason.TASK_DELETED, buried_at=now)
    refunded = ("", "submitting"), ("submitting", "failed")
    settled = ("", "submitting"), ("submitting", "processing"), ("processing", "completed")
    TaskEvent.objects.bulk_create(
        [
            TaskEvent(
                task_id=claim.pk,
                from_state=before,
                to_state=after,
                cause="tests",
                actor="tests",
                created_at=now + timedelta(microseconds=step),
            )
            for number, claim in zip(numbers, claims, strict=True)
            for step, (before, after) in enumerate(refunded if number % 3 == 0 else settled)
        ],
        batch_size=500,
    )


@pytest.mark.django_db(transaction=True)
def test_ten_thousand_charges_of_seven_and_ten_cents_with_a_third_refunded_add_up_exactly(
    simulator: Any,
) -> None:
    owner = makers.make_owner(balance="1000")
    quotes = prices()
    for start in range(0, ONE_BY_ONE, AT_ONCE):
        charge_and_end(owner, quotes, range(start, start + AT_ONCE))
    refresh_statistics()
    charge_and_end_in_bulk(owner, quotes, range(ONE_BY_ONE, TASKS))
    charged = TASKS // 2 * SEVEN_CENTS + TASKS // 2 * TEN_CENTS
    returned = sum((SEVEN_CENTS, TEN_CENTS)[number % 2] for number in range(0, TASKS, 3))
    sums = dict(Transfer.objects.values_list("kind").annotate(sum=Sum("amount_micros")))
    assert sums == {
        Kind.TOP_UP: 1_000_000_000,
        Kind.CHARGE: charged,
        Kind.REFUND: returned,
        Kind.SETTLE: charged - returned,
    }
    assert (charged, returned) == (850_000_000, 283_390_000)
    assert owner.balance_micros == 1_000_000_000 - charged + returned
    assert owner.api.get("/api/account").json() == {
        "balance": "433.390000",
        "held": "0.000000",
        "currency": "USDC",
    }
    assert (Charge.objects.count(), Resolution.objects.count()) == (TASKS, TASKS)
    newest = owner.api.get("/api/account/transfers?limit=1").json()["results"][0]
    assert newest["balance_after"] == "433.390000"


def test_no_amount_of_any_answer_is_written_like_a_rounded_binary_number(
    owner: Owner, simulator: Any
) -> None:
    now = timezone.now()
    billing.set_price(
        model=makers.MODEL,
        resolution="720p",
        audio=True,
        unit="second",
        provider_micros=100_000,
        markup="1",
        now=now,
    )
    for _ in range(3):  # 3 × 0.1 is where binary fractions show
        makers.submit(owner, seconds=4)
    makers.work()
    for address in ("/api/account", "/api/account/transfers", "/api/videos", "/api/models"):
        text = owner.api.get(address).content.decode()
        amounts = re.findall(r'"(-?\d+\.\d+)"', text)
        assert amounts, address
        assert all(re.fullmatch(r"\d+\.\d{6}", amount) for amount in amounts), address
    assert owner.api.get("/api/account").json()["balance"] == "98.800000"


@pytest.mark.parametrize("micros", [0, 1, 70_000, 100_000, 300_000, 2**53 + 1, 10**15])
def test_an_amount_is_written_and_read_back_without_loss(micros: int) -> None:
    text = to_amount(micros)
    assert Decimal(text).scaleb(6) == micros
    assert re.fullmatch(r"\d+\.\d{6}", text)
