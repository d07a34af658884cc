"""Reads of money."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings
from django.db.models import (
    BooleanField,
    Case,
    CharField,
    Count,
    F,
    Q,
    QuerySet,
    Sum,
    UUIDField,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from billing.errors import LimitReached
from billing.kinds import Kind, Leg, Outcome
from billing.models import Account, Charge, PriceVersion, Resolution, Transfer
from billing.prices import Quote
from core import db
from core.errors import Allowed
from core.statements import CompiledQuery, Parameter
from tombstones.models import ClaimState


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Micro-units. `available` excludes what is held for running videos."""

    available_micros: int
    held_micros: int


UNRESOLVED = Q(resolution__isnull=True)


def balance_of(owner_id: UUID) -> Balance:
    """Balance and held sum, read by one statement so that they belong together."""
    held = (
        Charge.objects.filter(UNRESOLVED, owner_id=owner_id)
        .order_by()
        .values("owner_id")
        .annotate(sum=Sum("amount_micros"))
        .values("sum")
    )
    row = (
        Account.objects.filter(pk=owner_id)
        .annotate(held=Coalesce(held[:1], Value(0)))
        .values_list("balance_micros", "held")
        .first()
    )
    available, held_micros = row or (0, 0)
    return Balance(available_micros=available, held_micros=held_micros)


_OPEN_PRICE = CompiledQuery(
    lambda: PriceVersion.objects.filter(
        model=Parameter("model", CharField()),
        resolution=Parameter("resolution", CharField()),
        audio=Parameter("audio", BooleanField()),
        valid_to__isnull=True,
    )
)


def quote(*, model: str, resolution: str, audio: bool, seconds: int) -> Quote | None:
    """Today's price of one video, or None when this option has no price and so cannot be ordered."""
    version = _OPEN_PRICE.first(model=model, resolution=resolution, audio=audio)
    return None if version is None else quote_at(version, seconds=seconds)


def quote_at(version: PriceVersion, *, seconds: int) -> Quote:
    return Quote(
        price_version_id=version.pk,
        unit=version.unit,
        unit_price_micros=version.unit_price_micros,
        quantity=seconds if version.unit == "second" else 1,
    )


def open_prices() -> QuerySet[PriceVersion]:
    return PriceVersion.objects.filter(valid_to__isnull=True)


_ACCOUNT = CompiledQuery(lambda: Account.objects.filter(pk=Parameter("owner_id", UUIDField())))


@db.transaction_required
def require_room_within_limits(
    *, owner_id: UUID, token_id: UUID | None, token_limit_micros: int | None, now: datetime
) -> None:
    """Judge the limits of owner and token, after the account's UPDATE and so under its lock.

    The charge of this request is already counted. Raises: LimitReached.
    """
    account = _ACCOUNT.one(owner_id=owner_id)
    if account.in_flight_limit is not None:
        in_flight = Charge.objects.filter(UNRESOLVED, owner_id=owner_id).count()
        if in_flight > account.in_flight_limit:
            raise LimitReached(limit=Allowed("running_videos", {"n": account.in_flight_limit}))
    if account.daily_spend_limit_micros is not None:
        _require_day("spend_per_day", Q(owner_id=owner_id), account.daily_spend_limit_micros, now)
    if token_id is not None and token_limit_micros is not None:
        _require_day("spend_of_token", Q(token_id=token_id), token_limit_micros, now)


def require_room_at_provider(*, provider: str, limit_micros: int | None, price: int, now: datetime) -> None:
    """Judge a provider's spending limit of the day (UTC) before a charge is made. Raises: LimitReached."""
    if limit_micros is not None:
        _require_day("spend_of_provider", Q(provider=provider), limit_micros - price, now)


def _require_day(kind: str, whose: Q, limit: int, now: datetime) -> None:
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    spent = Charge.objects.filter(whose, created_at__gte=day).aggregate(sum=Sum("amount_micros"))["sum"] or 0
    if spent > limit:
        shown = (
            {} if kind == "spend_of_provider" else {"micros": limit, "currency": settings.BILLING_CURRENCY}
        )
        raise LimitReached(limit=Allowed(kind, shown))


SIGNED = Case(
    When(credit=Leg.OWNER, then=F("amount_micros")),
    When(debit=Leg.OWNER, then=-F("amount_micros")),
    default=Value(0),
)


@dataclass(frozen=True, kw_only=True)
class StatementLine:
    """A transfer as its owner sees it. `signed_micros` is 0 for a settlement: that money left when held."""

    transfer: Transfer
    signed_micros: int
    balance_after_micros: int
    client_id: str | None  # of the task it is about
    is_buried: bool  # that task was deleted
    is_settled: bool  # its charge was settled


def statement(
    *,
    owner_id: UUID,
    limit: int,
    before: tuple[datetime, UUID] | None = None,
    with_settlements: bool = True,
) -> list[StatementLine]:
    """The owner's transfers, newest first, each with the balance after it.

    A settlement does not move the owner's balance: the money left it when it was held. People are shown the
    charge alone (`with_settlements=False`), so that one video is one line.

    Balances are counted back from the current one, so the first page reads only itself; a later page sums
    the rows that are newer than it, by index.
    """
    rows = Transfer.objects.filter(owner_id=owner_id).exclude(
        kind__in=[Kind.LOSS] if with_settlements else [Kind.LOSS, Kind.SETTLE]
    )
    newer_sum = 0
    if before is not None:
        at, key = before
        older = Q(created_at__lt=at) | Q(created_at=at, id__lt=key)
        newer_sum = rows.exclude(older).aggregate(sum=Sum(SIGNED))["sum"] or 0
        rows = rows.filter(older)
    account = Account.objects.filter(pk=owner_id).first()
    balance = (account.balance_micros if account else 0) - newer_sum
    lines = []
    page = (
        rows.select_related("charge__claim", "charge__resolution")
        .annotate(signed=SIGNED)
        .order_by("-created_at", "-id")
    )
    for transfer in page[:limit]:
        signed: int = transfer.signed
        claim = transfer.charge.claim if transfer.charge else None
        lines.append(
            StatementLine(
                transfer=transfer,
                signed_micros=signed,
                balance_after_micros=balance,
                client_id=claim.client_id if claim else None,
                is_buried=claim is not None and claim.state == ClaimState.BURIED,
                is_settled=_is_settled(transfer.charge),
            )
        )
        balance -= signed
    return lines


def _is_settled(charge: Charge | None) -> bool:
    resolution: Resolution | None = getattr(charge, "resolution", None)
    return resolution is not None and resolution.outcome == Outcome.SETTLED


@dataclass(frozen=True, kw_only=True)
class MonthSpent:
    """Micro-units since the first of the month (UTC): charged and returned."""

    charged_micros: int
    returned_micros: int
    videos: int


def spent_this_month(*, owner_id: UUID, now: datetime) -> MonthSpent:
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    sums = Transfer.objects.filter(owner_id=owner_id, created_at__gte=first).aggregate(
        charged=Sum("amount_micros", filter=Q(kind=Kind.CHARGE)),
        returned=Sum("amount_micros", filter=Q(kind__in=[Kind.REFUND, Kind.GOODWILL])),
        videos=Count("id", filter=Q(kind=Kind.CHARGE)),
    )
    return MonthSpent(
        charged_micros=sums["charged"] or 0, returned_micros=sums["returned"] or 0, videos=sums["videos"] or 0
    )


def held_count(owner_id: UUID) -> int:
    """How many videos the held sum is for."""
    return Charge.objects.filter(UNRESOLVED, owner_id=owner_id).count()
