"""What a money row cannot see alone."""

from core.invariants import Guard, append_only, frozen_columns, never_removed

CHARGE, RESOLUTION, TRANSFER = "billing_charge", "billing_resolution", "billing_transfer"
ACCOUNT, PRICE = "billing_account", "billing_priceversion"

GUARDS = [
    *append_only(table=TRANSFER, noun="billing_transfer", unique=[("id",), ("kind", "reference")]),
    *append_only(table=CHARGE, noun="billing_charge", unique=[("claim_id",)]),
    *append_only(table=RESOLUTION, noun="billing_resolution", unique=[("charge_id",)]),
    never_removed(table=ACCOUNT, noun="billing_account"),
    frozen_columns(table=ACCOUNT, noun="billing_account", columns=["owner_id", "created_at"]),
    Guard(
        name="billing_account_is_never_replaced",
        table=ACCOUNT,
        event="INSERT",
        when=f"EXISTS (SELECT 1 FROM {ACCOUNT} AS existing WHERE existing.owner_id = NEW.owner_id)",
        only="sqlite",
    ),
    Guard(
        name="billing_account_opens_empty",
        table=ACCOUNT,
        event="INSERT",
        when="NEW.balance_micros <> 0",
    ),
    never_removed(table=PRICE, noun="billing_price"),
    Guard(
        name="billing_price_is_never_replaced",
        table=PRICE,
        event="INSERT",
        when=(
            f"EXISTS (SELECT 1 FROM {PRICE} AS existing WHERE existing.id = NEW.id "
            "OR (existing.valid_to IS NULL AND NEW.valid_to IS NULL AND existing.model = NEW.model "
            "AND existing.resolution = NEW.resolution AND existing.audio = NEW.audio))"
        ),
        only="sqlite",
    ),
    Guard(
        name="billing_price_version_is_never_edited",
        table=PRICE,
        event="UPDATE",
        when=(
            "OLD.valid_to IS NOT NULL OR NEW.id IS DISTINCT FROM OLD.id "
            "OR NEW.model IS DISTINCT FROM OLD.model OR NEW.resolution IS DISTINCT FROM OLD.resolution "
            "OR NEW.audio IS DISTINCT FROM OLD.audio OR NEW.unit IS DISTINCT FROM OLD.unit "
            "OR NEW.provider_micros IS DISTINCT FROM OLD.provider_micros "
            "OR NEW.markup IS DISTINCT FROM OLD.markup "
            "OR NEW.unit_price_micros IS DISTINCT FROM OLD.unit_price_micros "
            "OR NEW.valid_from IS DISTINCT FROM OLD.valid_from"
        ),
    ),
    Guard(
        name="billing_charge_needs_a_live_claim_of_its_owner",
        table=CHARGE,
        event="INSERT",
        when=(
            "NOT EXISTS (SELECT 1 FROM tombstones_claim AS claim WHERE claim.id = NEW.claim_id "
            "AND claim.state = 'live' AND claim.owner_id = NEW.owner_id)"
        ),
    ),
    Guard(
        name="billing_resolution_adds_up_to_its_charge",
        table=RESOLUTION,
        event="INSERT",
        when=(
            "NEW.settled_micros + NEW.returned_micros IS DISTINCT FROM "
            f"(SELECT charge.amount_micros FROM {CHARGE} AS charge WHERE charge.claim_id = NEW.charge_id)"
        ),
    ),
    Guard(
        name="billing_charge_transfer_equals_its_charge",
        table=TRANSFER,
        event="INSERT",
        when=(
            "NEW.kind = 'charge' AND NOT EXISTS "
            f"(SELECT 1 FROM {CHARGE} AS charge WHERE charge.claim_id = NEW.charge_id "
            "AND charge.amount_micros = NEW.amount_micros AND charge.owner_id = NEW.owner_id)"
        ),
    ),
    Guard(
        name="billing_settle_and_refund_follow_the_resolution",
        table=TRANSFER,
        event="INSERT",
        when=(
            "NEW.kind IN ('settle', 'refund') AND NOT EXISTS "
            f"(SELECT 1 FROM {RESOLUTION} AS resolution JOIN {CHARGE} AS charge "
            "ON charge.claim_id = resolution.charge_id "
            "WHERE resolution.charge_id = NEW.charge_id AND charge.owner_id = NEW.owner_id "
            "AND ((NEW.kind = 'settle' AND resolution.settled_micros = NEW.amount_micros) "
            "OR (NEW.kind = 'refund' AND resolution.returned_micros = NEW.amount_micros)))"
        ),
    ),
    Guard(
        name="billing_one_transfer_per_charge_and_kind",
        table=TRANSFER,
        event="INSERT",
        when=(
            "NEW.kind IN ('charge', 'settle', 'refund') AND EXISTS "
            f"(SELECT 1 FROM {TRANSFER} AS earlier WHERE earlier.charge_id = NEW.charge_id "
            "AND earlier.kind = NEW.kind)"
        ),
    ),
    Guard(
        name="billing_returned_never_exceeds_charge",
        table=TRANSFER,
        event="INSERT",
        when=(
            "NEW.kind = 'goodwill' AND NOT EXISTS "
            f"(SELECT 1 FROM {RESOLUTION} AS resolution JOIN {CHARGE} AS charge "
            "ON charge.claim_id = resolution.charge_id "
            "WHERE resolution.charge_id = NEW.charge_id AND resolution.outcome = 'settled' "
            "AND charge.owner_id = NEW.owner_id AND NEW.amount_micros + resolution.returned_micros "
            f"+ COALESCE((SELECT SUM(earlier.amount_micros) FROM {TRANSFER} AS earlier "
            "WHERE earlier.charge_id = NEW.charge_id AND earlier.kind = 'goodwill'), 0) "
            "<= charge.amount_micros)"
        ),
    ),
]
