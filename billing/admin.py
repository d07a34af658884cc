from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from billing.models import Account, Charge, PriceVersion, Transfer
from billing.queries import balance_of
from core.admin import ReadOnlyAdmin, amount_column, link_column, link_to, register
from core.money import format_money

owner = link_column("billing_account", "owner_id", "owner")
amount = amount_column("amount_micros", "amount")
unit_price = amount_column("unit_price_micros", "price of a unit")
provider_price = amount_column("provider_micros", "provider's price of a unit")


def _money(micros: int) -> str:
    return format_money(micros, settings.BILLING_CURRENCY)


def _when(row: Transfer) -> str:
    return f"{_money(row.amount_micros)}, {row.created_at:%F %T} UTC"


def _lines(transfers: QuerySet[Transfer]) -> SafeString | str:
    """Transfers as one line each, linked."""
    lines = [
        (
            link_to("billing_transfer", row.pk, row.kind),
            _when(row),
        )
        for row in transfers
    ]
    return format_html_join("", "<div>{} {}</div>", lines) or "none"


@register(Account)
class AccountAdmin(ReadOnlyAdmin):
    """Balances. Held money is already taken from the balance."""

    RECENT = 20  # transfers on the page of an account

    list_display = (
        *("owner_id", amount_column("balance_micros", "balance"), "in_flight_limit"),
        *(amount_column("daily_spend_limit_micros", "limit a day"), "created_at"),
    )
    fields = readonly_fields = (
        *("owner_id", "person", "available", "held", "in_flight_limit"),
        *(amount_column("daily_spend_limit_micros", "limit a day"), "created_at", "recent_transfers"),
    )
    empty_value_display = "none"

    @admin.display(description="person")
    def person(self, account: Account) -> SafeString | None:
        return link_to("accounts_user", account.pk, "user")

    @admin.display(description="available")
    def available(self, account: Account) -> str:
        return _money(balance_of(account.pk).available_micros)

    @admin.display(description="held for running videos")
    def held(self, account: Account) -> str:
        return _money(balance_of(account.pk).held_micros)

    @admin.display(description="last transfers")
    def recent_transfers(self, account: Account) -> SafeString | str:
        rows = Transfer.objects.filter(owner_id=account.pk).order_by("-created_at", "-id")
        return _lines(rows[: self.RECENT])

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        return Q(pk__in=owners)


@register(Transfer)
class TransferAdmin(ReadOnlyAdmin):
    """The ledger: one row is one debit, one credit, one amount, and is never changed."""

    list_display = ("created_at", "kind", amount, "debit", "credit", owner, "reference", "actor")
    fields = readonly_fields = (
        *("id", "kind", "reference", amount, "debit", "credit", owner, "task"),
        *("actor", "note", "created_at"),
    )
    empty_value_display = "none"

    @admin.display(description="task")
    def task(self, transfer: Transfer) -> SafeString | None:
        return link_to("videos_videotask", transfer.charge_id)

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        kinds = [value for value, _ in Transfer._meta.get_field("kind").flatchoices]
        found = Q(kind__in=kinds, reference=words) | Q(owner_id__in=owners)
        return found | Q(pk=key) | Q(charge_id=key) if key else found


@register(Charge)
class ChargeAdmin(ReadOnlyAdmin):
    """What each task cost, with all that was frozen then, and how it ended."""

    list_display = ("claim_id", amount, "outcome", "provider", "model", owner, "created_at")
    list_select_related = ("resolution",)
    fields = readonly_fields = (
        *("task", owner, amount, unit_price, "quantity"),
        *(amount_column("max_price_micros", "highest price accepted"), "charges_on_refusal"),
        *(
            "provider",
            "model",
            "created_at",
            "outcome",
            "settled",
            "returned",
            "cause",
            "transfers",
            "goodwill",
        ),
    )
    empty_value_display = "none"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Charge]:
        return super().get_queryset(request).select_related("resolution")

    @admin.display(description="outcome")
    def outcome(self, charge: Charge) -> str:
        return self._of_resolution(charge, "outcome") or "held"

    @admin.display(description="settled")
    def settled(self, charge: Charge) -> str | None:
        micros = self._of_resolution(charge, "settled_micros")
        return None if micros is None else _money(micros)

    @admin.display(description="returned with the resolution")
    def returned(self, charge: Charge) -> str | None:
        micros = self._of_resolution(charge, "returned_micros")
        return None if micros is None else _money(micros)

    @admin.display(description="cause")
    def cause(self, charge: Charge) -> str | None:
        return self._of_resolution(charge, "cause")

    @admin.display(description="task")
    def task(self, charge: Charge) -> SafeString | None:
        return link_to("videos_videotask", charge.pk)

    @admin.display(description="transfers")
    def transfers(self, charge: Charge) -> SafeString | str:
        return _lines(Transfer.objects.filter(charge_id=charge.pk).order_by("created_at", "id"))

    @admin.display(description="goodwill")
    def goodwill(self, charge: Charge) -> SafeString | str:
        if self._of_resolution(charge, "outcome") != "settled":
            return "Only a settled charge can be returned in part."
        address = reverse("admin:videos_videotask_goodwill", args=[charge.pk])
        return format_html('<a href="{}">Give goodwill…</a>', address)

    def _of_resolution(self, charge: Charge, field: str) -> Any:
        resolution = getattr(charge, "resolution", None)
        return None if resolution is None else getattr(resolution, field)

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        return Q(pk=key) | Q(owner_id__in=owners) if key else Q(owner_id__in=owners)


@register(PriceVersion)
class PriceVersionAdmin(ReadOnlyAdmin):
    """Prices, open and closed. They are set by `manage.py load_prices` and never edited."""

    list_display = (
        *("model", "resolution", "audio", "unit", unit_price, provider_price, "markup"),
        *("valid_from", "valid_to"),
    )
    fields = readonly_fields = ("id", *list_display)
    empty_value_display = "open"

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        return Q(pk=key) if key else Q(model=words)
