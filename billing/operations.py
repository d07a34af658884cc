"""Every change of money. One transfer is one debit, one credit, one positive amount; nothing is ever
edited.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError
from django.db.models import BigIntegerField, F, Sum, UUIDField

from billing.errors import (
    GoodwillStale,
    InsufficientBalance,
    NotResolvable,
    ReferenceReused,
)
from billing.kinds import Kind, Leg, Outcome
from billing.models import Account, Charge, PriceVersion, Resolution, Transfer
from billing.prices import Quote, unit_price
from core import db
from core.errors import Invalid
from core.statements import CompiledUpdate, Parameter, insert

MAX_TRANSFER_MICROS = 10**15  # a thousand million units: beyond it, a typing error


@db.transaction
def top_up(*, owner_id: UUID, amount_micros: int, reference: str, actor: str, now: datetime) -> bool:
    """Add money. The same reference with the same content is a no-op (False); True when money was added.

    Raises: Invalid (amount, reference); ReferenceReused when it named another top-up.
    """
    _check_amount(amount_micros)
    if not 1 <= len(reference) <= 100:
        raise Invalid(field="reference", limit="1–100 characters")
    open_account(owner_id=owner_id, now=now)
    # The account's lock makes a concurrent top-up of the same reference wait and then be seen below.
    Account.objects.select_for_update().get(pk=owner_id)
    earlier = Transfer.objects.filter(kind=Kind.TOP_UP, reference=reference).first()
    if earlier is not None:
        if (earlier.owner_id, earlier.amount_micros) != (owner_id, amount_micros):
            raise ReferenceReused(reference=reference)
        return False
    try:
        with db.savepoint():
            _transfer(
                kind=Kind.TOP_UP,
                reference=reference,
                amount_micros=amount_micros,
                legs=(Leg.FUNDING, Leg.OWNER),
                owner_id=owner_id,
                charge_id=None,
                actor=actor,
                now=now,
            )
    except IntegrityError as error:  # another owner's top-up took the reference in between
        raise ReferenceReused(reference=reference) from error
    Account.objects.filter(pk=owner_id).update(balance_micros=F("balance_micros") + amount_micros)
    return True


@db.transaction_required
def open_account(*, owner_id: UUID, now: datetime) -> None:
    """Make sure that the owner has an account row; opened when first needed."""
    if not Account.objects.filter(pk=owner_id).exists():
        try:
            with db.savepoint():
                Account.objects.create(owner_id=owner_id, created_at=now)
        except IntegrityError:  # opened by another request in this moment, which is as good
            if not Account.objects.filter(pk=owner_id).exists():
                raise


@dataclass(frozen=True, kw_only=True)
class ChargeOrder:
    """All that a charge freezes, besides the quote."""

    claim_id: UUID
    owner_id: UUID
    max_price_micros: int | None
    charges_on_refusal: bool
    provider: str
    model: str
    token_id: UUID | None


_AMOUNT = Parameter("amount", BigIntegerField())
_TAKE_MONEY = CompiledUpdate(
    lambda: Account.objects.filter(pk=Parameter("owner_id", UUIDField()), balance_micros__gte=_AMOUNT),
    balance_micros=F("balance_micros") - _AMOUNT,
)


@db.transaction_required
def charge(*, order: ChargeOrder, quote: Quote, now: datetime) -> Charge:
    """Record the charge and its transfer, and take the money last, so that the account is locked briefly.

    Raises: InsufficientBalance; what this wrote must then be rolled back by the caller's savepoint.
    """
    charge = Charge(
        claim_id=order.claim_id,
        owner_id=order.owner_id,
        amount_micros=quote.amount_micros,
        max_price_micros=order.max_price_micros,
        price_version_id=quote.price_version_id,
        unit_price_micros=quote.unit_price_micros,
        quantity=quote.quantity,
        charges_on_refusal=order.charges_on_refusal,
        provider=order.provider,
        model=order.model,
        token_id=order.token_id,
        created_at=now,
    )
    insert(charge)
    _transfer(
        kind=Kind.CHARGE,
        reference=str(order.claim_id),
        amount_micros=quote.amount_micros,
        legs=(Leg.OWNER, Leg.CLEARING),
        owner_id=order.owner_id,
        charge_id=order.claim_id,
        actor="owner",
        now=now,
    )
    if not _TAKE_MONEY.run(owner_id=order.owner_id, amount=quote.amount_micros):
        raise InsufficientBalance(price=quote.amount_micros)
    return charge


@db.transaction_required
def settle(*, charge_id: UUID, settled_micros: int, cause: str, actor: str, now: datetime) -> None:
    """End a charge with a video: keep `settled_micros`, give the rest back. Zero legs are omitted.

    Raises: NotResolvable when it is resolved already or the amount is not within the charge.
    """
    owner_id, amount = _charge_of(charge_id)
    if not 1 <= settled_micros <= amount:
        raise NotResolvable(charge=str(charge_id))
    returned = amount - settled_micros
    _resolve(charge_id, Outcome.SETTLED, settled_micros, returned, cause, actor, now)
    _transfer(
        kind=Kind.SETTLE,
        reference=str(charge_id),
        amount_micros=settled_micros,
        legs=(Leg.CLEARING, Leg.REVENUE),
        owner_id=owner_id,
        charge_id=charge_id,
        actor=actor,
        now=now,
    )
    if returned:
        _give_back(charge_id, owner_id, returned, actor, now)


@db.transaction_required
def refund(*, charge_id: UUID, cause: str, actor: str, now: datetime) -> None:
    """End a charge without a video: all of it goes back. Raises: NotResolvable when it is resolved
    already.
    """
    owner_id, amount = _charge_of(charge_id)
    _resolve(charge_id, Outcome.REFUNDED, 0, amount, cause, actor, now)
    _give_back(charge_id, owner_id, amount, actor, now)


@db.transaction
def give_goodwill(
    *,
    charge_id: UUID,
    amount_micros: int,
    returned_shown_micros: int,
    reference: str,
    actor: str,
    reason: str,
    now: datetime,
) -> bool:
    """Return part of a settled charge out of revenue; False when this reference was given before.

    `returned_shown_micros` is what the form showed as returned so far.
    Raises: GoodwillStale when that has changed; NotResolvable when it would pass the charge or nothing is
    settled; ReferenceReused; Invalid.
    """
    _check_amount(amount_micros)
    if not reason.strip():
        raise Invalid(field="reason", limit="not empty")
    locked = Charge.objects.select_for_update().filter(pk=charge_id).first()
    resolution = Resolution.objects.filter(pk=charge_id, outcome=Outcome.SETTLED).first()
    if locked is None or resolution is None:
        raise NotResolvable(charge=str(charge_id))
    earlier = Transfer.objects.filter(kind=Kind.GOODWILL, reference=reference).first()
    if earlier is not None:
        if (earlier.charge_id, earlier.amount_micros) != (charge_id, amount_micros):
            raise ReferenceReused(reference=reference)
        return False
    given = Transfer.objects.filter(charge_id=charge_id, kind=Kind.GOODWILL).aggregate(
        sum=Sum("amount_micros")
    )
    returned = resolution.returned_micros + (given["sum"] or 0)
    if returned != returned_shown_micros:
        raise GoodwillStale(returned=returned)
    if returned + amount_micros > locked.amount_micros:
        raise NotResolvable(charge=str(charge_id))
    _transfer(
        kind=Kind.GOODWILL,
        reference=reference,
        amount_micros=amount_micros,
        legs=(Leg.REVENUE, Leg.OWNER),
        owner_id=locked.owner_id,
        charge_id=charge_id,
        actor=actor,
        note=reason,
        now=now,
    )
    Account.objects.filter(pk=locked.owner_id).update(balance_micros=F("balance_micros") + amount_micros)
    return True


@db.transaction
def set_price(
    *, model: str, resolution: str, audio: bool, unit: str, provider_micros: int, markup: str, now: datetime
) -> PriceVersion | None:
    """Close the open price of a model's option and open a new one; None when it is the same as before."""
    current = (
        PriceVersion.objects.select_for_update()
        .filter(model=model, resolution=resolution, audio=audio, valid_to__isnull=True)
        .first()
    )
    terms = (unit, provider_micros, markup)
    if current is not None:
        if (current.unit, current.provider_micros, current.markup) == terms:
            return None
        PriceVersion.objects.filter(pk=current.pk).update(valid_to=now)
    return PriceVersion.objects.create(
        model=model,
        resolution=resolution,
        audio=audio,
        unit=unit,
        provider_micros=provider_micros,
        markup=markup,
        unit_price_micros=unit_price(provider_micros=provider_micros, markup=markup),
        valid_from=now,
    )


@db.transaction
def withdraw_prices(*, model: str, now: datetime) -> int:
    """Close every open price of a model, which can then not be ordered; how many were closed."""
    return PriceVersion.objects.filter(model=model, valid_to__isnull=True).update(valid_to=now)


def _charge_of(charge_id: UUID) -> tuple[UUID, int]:
    found = Charge.objects.filter(pk=charge_id).values_list("owner_id", "amount_micros").first()
    if found is None:
        raise NotResolvable(charge=str(charge_id))
    return found


def _resolve(
    charge_id: UUID, outcome: Outcome, settled: int, returned: int, cause: str, actor: str, now: datetime
) -> None:
    try:
        with db.savepoint():
            Resolution.objects.create(
                charge_id=charge_id,
                outcome=outcome.value,
                settled_micros=settled,
                returned_micros=returned,
                cause=cause[:64],
                actor=actor,
                created_at=now,
            )
    except IntegrityError as error:
        raise NotResolvable(charge=str(charge_id)) from error


def _give_back(charge_id: UUID, owner_id: UUID, amount: int, actor: str, now: datetime) -> None:
    _transfer(
        kind=Kind.REFUND,
        reference=str(charge_id),
        amount_micros=amount,
        legs=(Leg.CLEARING, Leg.OWNER),
        owner_id=owner_id,
        charge_id=charge_id,
        actor=actor,
        now=now,
    )
    Account.objects.filter(pk=owner_id).update(balance_micros=F("balance_micros") + amount)


def _transfer(
    *,
    kind: Kind,
    reference: str,
    amount_micros: int,
    legs: tuple[Leg, Leg],
    owner_id: UUID | None,
    charge_id: UUID | None,
    actor: str,
    now: datetime,
    note: str = "",
) -> None:
    insert(
        Transfer(
            kind=kind.value,
            reference=reference,
            amount_micros=amount_micros,
            debit=legs[0].value,
            credit=legs[1].value,
            owner_id=owner_id,
            charge_id=charge_id,
            actor=actor,
            note=note,
            created_at=now,
        )
    )


def _check_amount(amount_micros: int) -> None:
    if not 1 <= amount_micros <= MAX_TRANSFER_MICROS:
        raise Invalid(field="amount", limit=f"1–{MAX_TRANSFER_MICROS} micro-units")
