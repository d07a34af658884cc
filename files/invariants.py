"""What a file's row cannot see alone."""

from core.invariants import Guard, frozen_columns, never_removed

OBJECT, FILE = "files_storedobject", "files_storedfile"

GUARDS = [
    never_removed(table=OBJECT, noun="files_object"),
    frozen_columns(table=OBJECT, noun="files_object", columns=["key", "created_at"]),
    Guard(
        name="files_object_is_never_replaced",
        table=OBJECT,
        event="INSERT",
        when=f"EXISTS (SELECT 1 FROM {OBJECT} AS existing WHERE existing.key = NEW.key)",
        only="sqlite",
    ),
    Guard(
        name="files_dead_object_stays_dead",
        table=OBJECT,
        event="UPDATE",
        when=(
            "NEW.state IS DISTINCT FROM OLD.state AND NOT (OLD.state = 'pending' OR "
            "(OLD.state = 'published' AND NEW.state = 'dead'))"
        ),
    ),
    Guard(
        name="files_shown_object_is_published",
        table=FILE,
        event="INSERT",
        when=(
            f"NOT EXISTS (SELECT 1 FROM {OBJECT} AS object WHERE object.key = NEW.stored_id "
            "AND object.state = 'published')"
        ),
    ),
    Guard(
        name="files_result_needs_a_live_claim_of_its_owner",
        table=FILE,
        event="INSERT",
        when=(
            "NEW.task_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM tombstones_claim AS claim "
            "WHERE claim.id = NEW.task_id AND claim.state = 'live' AND claim.owner_id = NEW.owner_id)"
        ),
    ),
    frozen_columns(
        table=FILE,
        noun="files_file",
        columns=["id", "owner_id", "kind", "size_bytes", "sha256", "stored_id", "task_id", "created_at"],
    ),
]
