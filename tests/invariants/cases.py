"""Rule → the SQL that breaks it. A rule that is declared and not here fails `test_rules.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.invariants.world import copied

LATER = "'2099-01-01 00:00:00'"


@dataclass(frozen=True, kw_only=True)
class Case:
    """`setup` is legal and leads to `breaking`, which the rule must refuse.

    `is_unguarded`: the triggers are lifted first, since one of them would refuse the statement before the
    constraint is asked. `shadowed_by`: the constraint that is always broken along with this one and may be
    named instead. `only`: the database that has this rule, or that could be talked into breaking it.
    """

    breaking: str
    setup: Sequence[str] = ()
    is_unguarded: bool = False
    shadowed_by: str | None = None
    only: Literal["sqlite", "postgresql"] | None = None


def row(table: str, key: str = "completed", column: str = "id") -> str:
    return f"{table} WHERE {column} = '{{{key}}}'"


def update(table: str, assignment: str, key: str = "completed", column: str = "id") -> str:
    return f"UPDATE {table} SET {assignment} WHERE {column} = '{{{key}}}'"


def replaced(table: str, where: str) -> Case:
    return Case(breaking=copied(table, where, verb="INSERT OR REPLACE"), only="sqlite")


def append_only(table: str, noun: str, where: str, assignment: str) -> dict[str, Case]:
    return {
        f"{noun}_is_never_changed": Case(breaking=f"UPDATE {table} SET {assignment} WHERE {where}"),
        f"{noun}_is_never_removed": Case(breaking=f"DELETE FROM {table} WHERE {where}"),
        f"{noun}_is_never_replaced": replaced(table, where),
    }


TOKEN, CLAIM, ACCOUNT = "accounts_apitoken", "tombstones_claim", "billing_account"
PRICE, CHARGE, RESOLUTION = "billing_priceversion", "billing_charge", "billing_resolution"
TRANSFER, OBJECT, FILE = "billing_transfer", "files_storedobject", "files_storedfile"
TASK, ATTEMPT, CALL = "videos_videotask", "videos_attempt", "videos_webhookcall"
ORPHAN, EVENT, EVIDENCE = "videos_orphanjob", "videos_taskevent", "videos_evidence"

OF_COMPLETED = "charge_id = '{completed}'"
TOP_UP = "kind = 'top_up' AND owner_id = '{owner}'"
NEW_CLAIM = copied(CLAIM, "id = '{submitting}'", id="'{fresh}'", client_id="'a-fresh-claim'")


def new_charge(**changes: str) -> str:
    """A charge of `NEW_CLAIM`, copied from that of the completed task."""
    return copied(CHARGE, "claim_id = '{completed}'", claim_id="'{fresh}'", **changes)


def new_transfer(where: str, **changes: str) -> str:
    return copied(TRANSFER, where, id="'{fresh1}'", reference="'another'", **changes)


def attempt_of_submitting(number: int) -> str:
    """A legal new attempt of the task that waits to be sent."""
    return copied(
        ATTEMPT,
        "id = '{attempt_processing}'",
        id=f"'{{fresh{number}}}'",
        task_id="'{submitting}'",
        number=str(number),
        outcome="'inflight'",
        upstream_id="NULL",
        finished_at="NULL",
    )


def new_object(state: str) -> str:
    dead_at = "created_at" if state == "dead" else "NULL"
    of_file = "key = (SELECT stored_id FROM files_storedfile WHERE id = '{file}')"
    return copied(OBJECT, of_file, key="'an-object'", state=f"'{state}'", dead_at=dead_at)


def new_file(**changes: str) -> str:
    return copied(FILE, "id = '{file}'", id="'{fresh}'", **{"stored_id": "'an-object'", **changes})


ACCOUNTS = {
    "accounts_token_digest_is_unique": Case(
        breaking=copied(TOKEN, "user_id = '{owner}'", id="'{fresh}'", name="'twin'")
    ),
    "accounts_token_limit_is_whole_and_not_negative": Case(
        breaking=update(TOKEN, "daily_spend_limit_micros = -1", "owner", "user_id")
    ),
}

CLAIMS = {
    "tombstones_one_claim_per_owner_and_client_id": Case(
        breaking=copied(CLAIM, "id = '{completed}'", id="'{fresh}'"), is_unguarded=True
    ),
    "tombstones_buried_claim_has_reason_and_time": Case(breaking=update(CLAIM, "state = 'buried'")),
    "tombstones_client_id_is_well_formed": Case(
        breaking=copied(CLAIM, "id = '{completed}'", id="'{fresh}'", client_id="'no spaces, please'")
    ),
    "tombstones_claim_is_never_removed": Case(breaking=f"DELETE FROM {row(CLAIM, 'abandoned')}"),
    "tombstones_claim_keeps_what_it_was_made_with": Case(breaking=update(CLAIM, "client_id = 'another-id'")),
    "tombstones_buried_claim_stays_buried": Case(
        breaking=update(CLAIM, "state = 'live', reason = NULL, buried_at = NULL", "abandoned")
    ),
    "tombstones_claim_is_never_replaced": replaced(CLAIM, "id = '{abandoned}'"),
    "tombstones_claim_is_buried_only_when_its_task_may_go": Case(
        breaking=update(
            CLAIM, "state = 'buried', reason = 'task_deleted', buried_at = created_at", "processing"
        )
    ),
}

BILLING_CONSTRAINTS = {
    "billing_account_never_overdrawn": Case(
        breaking=update(ACCOUNT, "balance_micros = -1", "owner", "owner_id")
    ),
    "billing_account_holds_whole_micros": Case(
        breaking=update(ACCOUNT, "balance_micros = 1.5", "owner", "owner_id"), only="sqlite"
    ),
    "billing_account_limit_is_not_negative": Case(
        breaking=update(ACCOUNT, "daily_spend_limit_micros = -1", "owner", "owner_id")
    ),
    "billing_one_open_price_per_model_and_option": Case(
        breaking=copied(PRICE, "model = 'veo3.1' AND resolution = '720p' AND audio", id="'{fresh}'"),
        is_unguarded=True,
    ),
    "billing_price_is_at_least_one_whole_micro": Case(
        breaking=copied(
            PRICE,
            "model = 'veo3.1' AND resolution = '720p' AND audio",
            id="'{fresh}'",
            model="'free'",
            unit_price_micros="0",
        )
    ),
    "billing_price_ends_after_it_begins": Case(
        breaking=f"UPDATE {PRICE} SET valid_to = '2000-01-01 00:00:00' WHERE model = 'veo3.1'"
    ),
    "billing_charge_is_at_least_one_whole_micro": Case(
        setup=[NEW_CLAIM], breaking=new_charge(amount_micros="0", unit_price_micros="0")
    ),
    "billing_charge_within_max_price": Case(
        setup=[NEW_CLAIM], breaking=new_charge(max_price_micros="amount_micros - 1")
    ),
    "billing_charge_is_unit_price_times_quantity": Case(
        setup=[NEW_CLAIM], breaking=new_charge(quantity="quantity + 1")
    ),
    "billing_resolution_outcome_fits_amounts": Case(
        breaking=copied(RESOLUTION, OF_COMPLETED, charge_id="'{processing}'", outcome="'refunded'")
    ),
    "billing_one_transfer_per_kind_and_reference": Case(
        breaking=copied(TRANSFER, TOP_UP, id="'{fresh}'"), is_unguarded=True
    ),
    "billing_transfer_is_at_least_one_whole_micro": Case(breaking=new_transfer(TOP_UP, amount_micros="0")),
    "billing_transfer_legs_fit_kind": Case(breaking=new_transfer(TOP_UP, debit="'revenue'")),
    "billing_transfer_names_its_owner": Case(breaking=new_transfer(TOP_UP, owner_id="NULL")),
    "billing_transfer_names_its_charge": Case(
        breaking=new_transfer(f"kind = 'goodwill' AND {OF_COMPLETED}", charge_id="NULL"), is_unguarded=True
    ),
}

BILLING_GUARDS = {
    **append_only(TRANSFER, "billing_transfer", TOP_UP, "amount_micros = amount_micros + 1"),
    **append_only(CHARGE, "billing_charge", "claim_id = '{completed}'", "model = 'another'"),
    **append_only(RESOLUTION, "billing_resolution", OF_COMPLETED, "cause = 'another'"),
    "billing_account_is_never_removed": Case(breaking=f"DELETE FROM {row(ACCOUNT, 'owner', 'owner_id')}"),
    "billing_account_keeps_what_it_was_made_with": Case(
        breaking=update(ACCOUNT, f"created_at = {LATER}", "owner", "owner_id")
    ),
    "billing_account_is_never_replaced": Case(
        breaking=copied(ACCOUNT, "owner_id = '{owner}'", verb="INSERT OR REPLACE", balance_micros="0"),
        only="sqlite",
    ),
    "billing_account_opens_empty": Case(
        breaking=copied(ACCOUNT, "owner_id = '{owner}'", owner_id="'{fresh}'")
    ),
    "billing_price_is_never_removed": Case(breaking=f"DELETE FROM {PRICE} WHERE model = 'kling-2.5-turbo'"),
    "billing_price_is_never_replaced": replaced(PRICE, "model = 'kling-2.5-turbo'"),
    "billing_price_version_is_never_edited": Case(
        breaking=f"UPDATE {PRICE} SET unit_price_micros = 1 WHERE model = 'veo3.1'"
    ),
    "billing_charge_needs_a_live_claim_of_its_owner": Case(
        breaking=copied(CHARGE, "claim_id = '{completed}'", claim_id="'{abandoned}'")
    ),
    "billing_resolution_adds_up_to_its_charge": Case(
        breaking=copied(
            RESOLUTION, OF_COMPLETED, charge_id="'{processing}'", settled_micros="settled_micros - 1"
        )
    ),
    "billing_charge_transfer_equals_its_charge": Case(
        setup=[NEW_CLAIM, new_charge()],
        breaking=new_transfer(
            f"kind = 'charge' AND {OF_COMPLETED}", charge_id="'{fresh}'", amount_micros="amount_micros + 1"
        ),
    ),
    "billing_settle_and_refund_follow_the_resolution": Case(
        breaking=new_transfer(f"kind = 'settle' AND {OF_COMPLETED}", charge_id="'{processing}'")
    ),
    "billing_one_transfer_per_charge_and_kind": Case(
        breaking=new_transfer(f"kind = 'charge' AND {OF_COMPLETED}")
    ),
    "billing_returned_never_exceeds_charge": Case(
        breaking=new_transfer(
            f"kind = 'goodwill' AND {OF_COMPLETED}",
            amount_micros="(SELECT amount_micros FROM billing_charge WHERE claim_id = '{completed}')",
        )
    ),
}

FILES = {
    "files_only_dead_objects_are_removed": Case(breaking=f"UPDATE {OBJECT} SET removed_at = created_at"),
    "files_one_result_per_task": Case(setup=[new_object("published")], breaking=new_file()),
    "files_result_names_its_task": Case(setup=[new_object("published")], breaking=new_file(task_id="NULL")),
    "files_file_is_not_empty": Case(
        setup=[new_object("published")], breaking=new_file(task_id="'{processing}'", size_bytes="0")
    ),
    "files_object_is_never_removed": Case(setup=[new_object("dead")], breaking=f"DELETE FROM {OBJECT}"),
    "files_object_is_never_replaced": replaced(
        OBJECT, "key = (SELECT stored_id FROM files_storedfile WHERE id = '{file}')"
    ),
    "files_object_keeps_what_it_was_made_with": Case(breaking=f"UPDATE {OBJECT} SET created_at = {LATER}"),
    "files_dead_object_stays_dead": Case(
        setup=[new_object("dead")],
        breaking=f"UPDATE {OBJECT} SET state = 'published', dead_at = NULL WHERE key = 'an-object'",
    ),
    "files_shown_object_is_published": Case(
        setup=[new_object("pending")], breaking=new_file(task_id="'{processing}'")
    ),
    "files_result_needs_a_live_claim_of_its_owner": Case(
        setup=[new_object("published")], breaking=new_file(task_id="'{deleted}'")
    ),
    "files_file_keeps_what_it_was_made_with": Case(breaking=update(FILE, "size_bytes = 1", "file")),
}

TASK_CONSTRAINTS = {
    "videos_task_state_is_known": Case(
        breaking=update(TASK, "state = 'lost'", "processing"),
        is_unguarded=True,
        shadowed_by="videos_only_unfinished_tasks_are_due",
    ),
    "videos_only_unfinished_tasks_are_due": Case(breaking=update(TASK, "next_check_at = NULL", "processing")),
    "videos_failed_task_has_a_reason": Case(breaking=update(TASK, "error_code = NULL", "failed")),
    "videos_completed_task_has_a_result": Case(breaking=update(TASK, "result_file_id = NULL")),
    "videos_progress_is_100_only_when_completed": Case(breaking=update(TASK, "progress = 100", "processing")),
    "videos_running_task_was_accepted": Case(breaking=update(TASK, "accepted_at = NULL", "processing")),
    "videos_unknown_task_has_an_unclear_time": Case(
        breaking=update(TASK, "first_unclear_at = NULL", "unknown")
    ),
}

TASK_GUARDS = {
    "videos_task_changes_state_by_the_table": Case(
        breaking=update(
            TASK, "state = 'processing', finished_at = NULL, next_check_at = created_at", "failed"
        )
    ),
    "videos_task_is_born_submitting_or_refused": Case(
        setup=[NEW_CLAIM],
        breaking=copied(TASK, "id = '{processing}'", id="'{fresh}'", client_id="'a-fresh-claim'"),
    ),
    "videos_task_needs_a_live_claim_of_its_owner": Case(
        breaking=copied(
            TASK,
            "id = '{submitting}'",
            id="'{abandoned}'",
            client_id="(SELECT client_id FROM tombstones_claim WHERE id = '{abandoned}')",
        )
    ),
    "videos_final_task_has_its_money_resolved": Case(
        breaking=update(
            TASK,
            "state = 'failed', error_code = 'cancelled', finished_at = created_at, next_check_at = NULL",
            "processing",
        )
    ),
    "videos_task_is_deleted_only_when_final_and_buried": Case(breaking=f"DELETE FROM {row(TASK)}"),
    "videos_task_progress_never_falls": Case(
        setup=[update(TASK, "progress = 50", "processing")],
        breaking=update(TASK, "progress = 49", "processing"),
    ),
    "videos_task_keeps_what_it_was_made_with": Case(breaking=update(TASK, "seconds = 4", "processing")),
    "videos_task_is_never_replaced": replaced(TASK, "id = '{submitting}'"),
    "videos_unknown_is_left_with_evidence": Case(breaking=update(TASK, "state = 'submitting'", "unknown")),
    "videos_payload_needs_a_live_claim": Case(
        breaking=copied("videos_payload", "task_id = '{completed}'", task_id="'{deleted}'")
    ),
    "videos_attempt_bodies_need_a_live_claim": Case(
        breaking=copied(
            "videos_attemptpayload", "attempt_id = '{attempt_processing}'", attempt_id="'{attempt_deleted}'"
        )
    ),
}

ATTEMPTS = {
    "videos_attempts_are_numbered_once": Case(
        breaking=copied(
            ATTEMPT,
            "id = '{attempt_processing}'",
            id="'{fresh}'",
            outcome="'unclear'",
            upstream_id="NULL",
        ),
        is_unguarded=True,
    ),
    "videos_upstream_id_bound_to_one_attempt": Case(
        breaking=copied(ATTEMPT, "id = '{attempt_processing}'", id="'{fresh}'", task_id="'{fresh1}'"),
        is_unguarded=True,
    ),
    "videos_one_attempt_in_flight_per_task": Case(
        setup=[attempt_of_submitting(1)], breaking=attempt_of_submitting(2), is_unguarded=True
    ),
    "videos_one_accepted_attempt_per_task": Case(
        breaking=copied(
            ATTEMPT, "id = '{attempt_processing}'", id="'{fresh}'", number="2", upstream_id="'second'"
        ),
        is_unguarded=True,
    ),
    "videos_attempt_in_flight_has_no_end": Case(
        breaking=update(ATTEMPT, "finished_at = NULL", "attempt_processing")
    ),
    "videos_accepted_attempt_has_an_upstream_id": Case(
        breaking=update(ATTEMPT, "upstream_id = 'a-job'", "attempt_unknown")
    ),
    "videos_attempt_is_never_removed": Case(breaking=f"DELETE FROM {row(ATTEMPT, 'attempt_deleted')}"),
    "videos_attempt_starts_in_flight": Case(
        breaking=attempt_of_submitting(1).replace("'inflight'", "'unclear'")
    ),
    "videos_attempt_needs_a_live_unfinished_task": Case(
        breaking=attempt_of_submitting(2).replace("{submitting}", "{processing}")
    ),
    "videos_attempt_outcome_is_never_rewritten": Case(
        breaking=update(ATTEMPT, "outcome = 'unclear'", "attempt_processing")
    ),
    "videos_attempt_upstream_id_is_set_once": Case(
        breaking=update(ATTEMPT, "upstream_id = 'another'", "attempt_processing")
    ),
    "videos_attempt_keeps_what_it_was_made_with": Case(
        breaking=update(ATTEMPT, "key = 'another'", "attempt_processing")
    ),
    "videos_attempt_is_never_replaced": Case(
        setup=[attempt_of_submitting(1)],
        breaking=copied(ATTEMPT, "task_id = '{submitting}'", verb="INSERT OR REPLACE"),
        only="sqlite",
    ),
}

RECORDS = {
    **append_only(EVIDENCE, "videos_evidence", "task_id = '{processing}'", "reason = 'another'"),
    **append_only(EVENT, "videos_event", "task_id = '{completed}'", "cause = 'another'"),
    **append_only(ORPHAN, "videos_orphan_job", "upstream_id = 'orphan'", "source = 'another'"),
    "videos_orphan_job_is_noted_once": Case(
        breaking=copied(ORPHAN, "upstream_id = 'orphan'", id="'{fresh}'"), is_unguarded=True
    ),
    "videos_one_call_row_per_task_and_job": Case(
        breaking=copied(CALL, "upstream_id = 'job-of-a-call'", id="'{fresh}'")
    ),
    "videos_provider_limit_is_whole_and_not_negative": Case(
        breaking="UPDATE videos_providerstatus SET daily_spend_limit_micros = -1 "
        "WHERE provider = 'a-quiet-provider'"
    ),
    "videos_alarm_has_a_time_and_a_probe": Case(
        breaking="UPDATE videos_providerstatus SET alarm = 'locked' WHERE provider = 'a-quiet-provider'"
    ),
}

GROUPS: dict[str, dict[str, Case]] = {
    "accounts, claims, files": {**ACCOUNTS, **CLAIMS, **FILES},
    "billing": {**BILLING_CONSTRAINTS, **BILLING_GUARDS},
    "tasks": {**TASK_CONSTRAINTS, **TASK_GUARDS},
    "attempts and records": {**ATTEMPTS, **RECORDS},
}
CASES: dict[str, Case] = {name: case for group in GROUPS.values() for name, case in group.items()}
