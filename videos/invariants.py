"""What a task's or an attempt's row cannot see alone."""

from core.invariants import Guard, append_only, frozen_columns, never_removed
from videos.states import BIRTHS, OUTCOME_CHANGES, TRANSITIONS

TASK, ATTEMPT = "videos_videotask", "videos_attempt"
PAYLOAD, ATTEMPT_PAYLOAD = "videos_payload", "videos_attemptpayload"
LIVE_CLAIM = "SELECT 1 FROM tombstones_claim AS claim WHERE claim.state = 'live'"
RESOLUTION = "billing_resolution AS resolution WHERE resolution.charge_id = NEW.id"


def _pairs(old: str, new: str, pairs: frozenset[tuple[str, str]]) -> str:
    allowed = (f"({old} = '{before}' AND {new} = '{after}')" for before, after in sorted(pairs))
    return f"NOT ({' OR '.join(allowed)})"


GUARDS = [
    # --- tasks
    Guard(
        name="videos_task_changes_state_by_the_table",
        table=TASK,
        event="UPDATE",
        when=f"OLD.state IS DISTINCT FROM NEW.state AND {_pairs('OLD.state', 'NEW.state', TRANSITIONS)}",
    ),
    Guard(
        name="videos_task_is_born_submitting_or_refused",
        table=TASK,
        event="INSERT",
        when=f"NEW.state NOT IN ({', '.join(repr(state.value) for state in sorted(BIRTHS))})",
    ),
    Guard(
        name="videos_task_needs_a_live_claim_of_its_owner",
        table=TASK,
        event="INSERT",
        when=(
            f"NOT EXISTS ({LIVE_CLAIM} AND claim.id = NEW.id AND claim.owner_id = NEW.owner_id "
            "AND claim.client_id = NEW.client_id)"
        ),
    ),
    Guard(
        name="videos_final_task_has_its_money_resolved",
        table=TASK,
        event="UPDATE",
        when=(
            "OLD.state IS DISTINCT FROM NEW.state AND ("
            f"(NEW.state = 'completed' AND NOT EXISTS (SELECT 1 FROM {RESOLUTION} "
            "AND resolution.outcome = 'settled')) OR "
            f"(NEW.state = 'failed' AND NOT EXISTS (SELECT 1 FROM {RESOLUTION} "
            "AND (resolution.outcome = 'refunded' OR EXISTS (SELECT 1 FROM billing_charge AS charge "
            "WHERE charge.claim_id = NEW.id AND charge.charges_on_refusal)))))"
        ),
    ),
    Guard(
        name="videos_task_is_deleted_only_when_final_and_buried",
        table=TASK,
        event="DELETE",
        when=(
            "OLD.state NOT IN ('completed', 'failed') "
            f"OR EXISTS ({LIVE_CLAIM} AND claim.id = OLD.id) "
            "OR EXISTS (SELECT 1 FROM billing_charge AS charge WHERE charge.claim_id = OLD.id AND NOT EXISTS "
            "(SELECT 1 FROM billing_resolution AS resolution WHERE resolution.charge_id = OLD.id))"
        ),
    ),
    Guard(
        name="videos_task_progress_never_falls",
        table=TASK,
        event="UPDATE",
        when="OLD.progress IS NOT NULL AND (NEW.progress IS NULL OR NEW.progress < OLD.progress)",
    ),
    frozen_columns(
        table=TASK,
        noun="videos_task",
        columns=[
            *("id", "owner_id", "client_id", "request_hash", "provider", "model", "seconds", "resolution"),
            *("aspect_ratio", "audio", "seed", "created_at"),
        ],
    ),
    Guard(
        name="videos_task_is_never_replaced",
        table=TASK,
        event="INSERT",
        when=f"EXISTS (SELECT 1 FROM {TASK} AS existing WHERE existing.id = NEW.id)",
        only="sqlite",
    ),
    Guard(
        name="tombstones_claim_is_buried_only_when_its_task_may_go",
        table="tombstones_claim",
        event="UPDATE",
        when=(
            "NEW.state = 'buried' AND OLD.state = 'live' AND EXISTS (SELECT 1 FROM "
            f"{TASK} AS task WHERE task.id = NEW.id AND task.state NOT IN ('completed', 'failed'))"
        ),
    ),
    # --- attempts
    never_removed(table=ATTEMPT, noun="videos_attempt"),
    Guard(
        name="videos_attempt_starts_in_flight",
        table=ATTEMPT,
        event="INSERT",
        when="NEW.outcome <> 'inflight'",
    ),
    Guard(
        name="videos_attempt_needs_a_live_unfinished_task",
        table=ATTEMPT,
        event="INSERT",
        when=(
            f"NOT EXISTS (SELECT 1 FROM {TASK} AS task JOIN tombstones_claim AS claim ON claim.id = task.id "
            "WHERE task.id = NEW.task_id AND claim.state = 'live' AND task.state = 'submitting' "
            "AND task.owner_id = NEW.owner_id)"
        ),
    ),
    Guard(
        name="videos_attempt_outcome_is_never_rewritten",
        table=ATTEMPT,
        event="UPDATE",
        when=(
            "OLD.outcome IS DISTINCT FROM NEW.outcome AND "
            + _pairs("OLD.outcome", "NEW.outcome", OUTCOME_CHANGES)
        ),
    ),
    Guard(
        name="videos_attempt_upstream_id_is_set_once",
        table=ATTEMPT,
        event="UPDATE",
        when="OLD.upstream_id IS NOT NULL AND NEW.upstream_id IS DISTINCT FROM OLD.upstream_id",
    ),
    frozen_columns(
        table=ATTEMPT,
        noun="videos_attempt",
        columns=[
            *("id", "task_id", "owner_id", "number", "key", "marker", "request_sha256", "provider"),
            *("provider_account", "model", "started_at"),
        ],
    ),
    Guard(
        name="videos_attempt_is_never_replaced",
        table=ATTEMPT,
        event="INSERT",
        when=(
            f"EXISTS (SELECT 1 FROM {ATTEMPT} AS existing WHERE existing.id = NEW.id "
            "OR (existing.task_id = NEW.task_id AND (existing.number = NEW.number "
            "OR (existing.outcome = 'inflight' AND NEW.outcome = 'inflight'))))"
        ),
        only="sqlite",
    ),
    # --- records
    *append_only(table="videos_evidence", noun="videos_evidence", unique=[("id",)]),
    *append_only(table="videos_taskevent", noun="videos_event", unique=[("id",)]),
    *append_only(
        table="videos_orphanjob",
        noun="videos_orphan_job",
        unique=[("id",), ("provider_account", "upstream_id")],
    ),
    Guard(
        name="videos_unknown_is_left_with_evidence",
        table=TASK,
        event="UPDATE",
        when=(
            "OLD.state = 'unknown' AND NEW.state IS DISTINCT FROM 'unknown' AND NOT EXISTS "
            "(SELECT 1 FROM videos_evidence AS evidence WHERE evidence.task_id = OLD.id "
            "AND evidence.created_at >= OLD.entered_state_at)"
        ),
    ),
    Guard(
        name="videos_payload_needs_a_live_claim",
        table=PAYLOAD,
        event="INSERT",
        when=f"NOT EXISTS ({LIVE_CLAIM} AND claim.id = NEW.task_id)",
    ),
    Guard(
        name="videos_attempt_bodies_need_a_live_claim",
        table=ATTEMPT_PAYLOAD,
        event="INSERT",
        when=(
            f"NOT EXISTS ({LIVE_CLAIM} AND claim.id = (SELECT attempt.task_id FROM {ATTEMPT} AS attempt "
            "WHERE attempt.id = NEW.attempt_id))"
        ),
    ),
]
