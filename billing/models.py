from functools import reduce
from operator import or_

from django.db import models
from django.db.models import F, Q

from billing.kinds import LEGS, OF_A_CHARGE, Kind, Leg, Outcome
from core.constraints import is_integer
from core.ids import new_id
from tombstones.models import Claim


class Account(models.Model):
    """An owner's prepaid balance, in micro-units. What is held for running videos is already taken from
    it.
    """

    owner_id = models.UUIDField(primary_key=True, editable=False)
    balance_micros = models.BigIntegerField(default=0)
    in_flight_limit = models.PositiveIntegerField(null=True, blank=True)  # unfinished tasks; empty: none
    daily_spend_limit_micros = models.BigIntegerField(
        null=True, blank=True
    )  # charged a day (UTC); empty: none
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(balance_micros__gte=0), name="billing_account_never_overdrawn"
            ),
            models.CheckConstraint(
                condition=is_integer("balance_micros") & is_integer("daily_spend_limit_micros"),
                name="billing_account_holds_whole_micros",
            ),
            models.CheckConstraint(
                condition=Q(daily_spend_limit_micros__isnull=True) | Q(daily_spend_limit_micros__gte=0),
                name="billing_account_limit_is_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return str(self.owner_id)


class PriceVersion(models.Model):
    """What one unit of a model costs, from `valid_from` on. The open version (no `valid_to`) is quoted.

    A version is never edited: a new price closes the old version and adds another.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    model = models.CharField(max_length=64)
    resolution = models.CharField(max_length=16)
    audio = models.BooleanField()
    unit = models.CharField(max_length=8, choices=[("second", "second"), ("video", "video")])
    provider_micros = models.BigIntegerField()  # the provider's price of one unit
    markup = models.CharField(max_length=16)  # the decimal text it was multiplied by
    unit_price_micros = models.BigIntegerField()  # what the owner pays for one unit
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["model", "resolution", "audio"],
                condition=Q(valid_to__isnull=True),
                name="billing_one_open_price_per_model_and_option",
            ),
            models.CheckConstraint(
                condition=Q(unit_price_micros__gte=1, provider_micros__gte=0)
                & is_integer("unit_price_micros")
                & is_integer("provider_micros"),
                name="billing_price_is_at_least_one_whole_micro",
            ),
            models.CheckConstraint(
                condition=Q(valid_to__isnull=True) | Q(valid_to__gte=F("valid_from")),
                name="billing_price_ends_after_it_begins",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.resolution} {'with' if self.audio else 'without'} audio"


class Charge(models.Model):
    """The permanent record that the task of a claim cost its owner an amount; it survives the task.

    Price, unit price, quantity and the rule on refused outputs are frozen here and never recomputed.
    """

    claim = models.OneToOneField(Claim, primary_key=True, on_delete=models.PROTECT, related_name="charge")
    owner_id = models.UUIDField()
    amount_micros = models.BigIntegerField()
    max_price_micros = models.BigIntegerField(null=True)  # what the client was willing to pay
    price_version = models.ForeignKey(
        PriceVersion, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    unit_price_micros = models.BigIntegerField()
    quantity = models.PositiveIntegerField()  # price units
    charges_on_refusal = models.BooleanField()  # announced before ordering
    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=64)
    token_id = models.UUIDField(null=True)  # the API token that ordered, for its spending limit
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(amount_micros__gte=1)
                & is_integer("amount_micros")
                & is_integer("unit_price_micros")
                & is_integer("max_price_micros"),
                name="billing_charge_is_at_least_one_whole_micro",
            ),
            models.CheckConstraint(
                condition=Q(max_price_micros__isnull=True) | Q(amount_micros__lte=F("max_price_micros")),
                name="billing_charge_within_max_price",
            ),
            models.CheckConstraint(
                condition=Q(amount_micros=F("unit_price_micros") * F("quantity")),
                name="billing_charge_is_unit_price_times_quantity",
            ),
        ]
        indexes = [
            models.Index(fields=["owner_id", "created_at"], name="billing_charge_owner_day"),
            models.Index(
                fields=["token_id", "created_at"],
                name="billing_charge_token_day",
                condition=Q(token_id__isnull=False),
            ),
            models.Index(fields=["provider", "created_at"], name="billing_charge_provider_day"),
        ]

    def __str__(self) -> str:
        return f"charge of {self.claim_id}"


class Resolution(models.Model):
    """How a charge ended: at most one row per charge, inserted with its transfers."""

    charge = models.OneToOneField(
        Charge, primary_key=True, on_delete=models.PROTECT, related_name="resolution"
    )
    outcome = models.CharField(max_length=8, choices=[(item.value, item.value) for item in Outcome])
    settled_micros = models.BigIntegerField()
    returned_micros = models.BigIntegerField()
    cause = models.CharField(max_length=64)  # the task's final code
    actor = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(settled_micros__gte=0, returned_micros__gte=0)
                & is_integer("settled_micros")
                & is_integer("returned_micros")
                & (
                    Q(outcome=Outcome.SETTLED.value, settled_micros__gte=1)
                    | Q(outcome=Outcome.REFUNDED.value, settled_micros=0, returned_micros__gte=1)
                ),
                name="billing_resolution_outcome_fits_amounts",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} {self.charge_id}"


def _legs_fit_kind() -> Q:
    return reduce(
        or_,
        (
            Q(kind=kind.value, debit=debit.value, credit=credit.value)
            for kind, pairs in LEGS.items()
            for debit, credit in pairs
        ),
    )


class Transfer(models.Model):
    """One immutable ledger row: `amount_micros` leaves `debit` and reaches `credit`.

    A side is a house account or `owner`, who is named by `owner_id`. House accounts have no stored balance:
    they would be rows that everybody waits for.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=12, choices=[(item.value, item.value) for item in Kind])
    reference = models.CharField(max_length=128)
    amount_micros = models.BigIntegerField()
    debit = models.CharField(max_length=16, choices=[(item.value, item.value) for item in Leg])
    credit = models.CharField(max_length=16, choices=[(item.value, item.value) for item in Leg])
    owner_id = models.UUIDField(null=True)
    charge = models.ForeignKey(Charge, on_delete=models.PROTECT, null=True, related_name="transfers")
    actor = models.CharField(max_length=150)
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "reference"], name="billing_one_transfer_per_kind_and_reference"
            ),
            models.CheckConstraint(
                condition=Q(amount_micros__gte=1) & is_integer("amount_micros"),
                name="billing_transfer_is_at_least_one_whole_micro",
            ),
            models.CheckConstraint(condition=_legs_fit_kind(), name="billing_transfer_legs_fit_kind"),
            models.CheckConstraint(
                condition=Q(owner_id__isnull=False) | ~(Q(debit=Leg.OWNER.value) | Q(credit=Leg.OWNER.value)),
                name="billing_transfer_names_its_owner",
            ),
            models.CheckConstraint(
                condition=Q(charge__isnull=False) | ~Q(kind__in=[kind.value for kind in OF_A_CHARGE]),
                name="billing_transfer_names_its_charge",
            ),
        ]
        indexes = [
            models.Index(fields=["owner_id", "created_at", "id"], name="billing_transfer_statement"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.reference}"
