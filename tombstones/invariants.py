"""What a claim's row cannot see alone: its own past."""

from core.invariants import Guard, frozen_columns, never_removed

TABLE = "tombstones_claim"

GUARDS = [
    never_removed(table=TABLE, noun="tombstones_claim"),
    frozen_columns(
        table=TABLE, noun="tombstones_claim", columns=["id", "owner_id", "client_id", "created_at"]
    ),
    Guard(
        name="tombstones_buried_claim_stays_buried",
        table=TABLE,
        event="UPDATE",
        when="OLD.state = 'buried'",
    ),
    Guard(
        name="tombstones_claim_is_never_replaced",
        table=TABLE,
        event="INSERT",
        when=(
            f"EXISTS (SELECT 1 FROM {TABLE} AS existing WHERE existing.id = NEW.id "
            "OR (existing.owner_id = NEW.owner_id AND existing.client_id = NEW.client_id))"
        ),
        only="sqlite",
    ),
]
