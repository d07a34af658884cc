"""What the rows of claims, tasks, attempts and files must show together."""

from core import audit
from core.audit import Rule
from videos.providers.base import SubmitIdempotency
from videos.providers.registry import get_provider, provider_names
from videos.states import BIRTHS, FINAL, TRANSITIONS, UNFINISHED


def violations() -> list[str]:
    """Every broken invariant of the whole database, a line each; empty when all hold."""
    return [
        f"{finding.says}: {violation}" for finding in audit.findings() for violation in finding.violations
    ]


def _quoted(words: frozenset[str] | set[str] | tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words)) or "''"


def _providers_that_know_a_repeated_key() -> set[str]:
    """Of these the contract lets the same key be sent again after an unclear answer."""
    return {
        name
        for name in provider_names()
        if get_provider(name).capabilities.submit_idempotency != SubmitIdempotency.NONE
    }


_LEGAL_CHANGE = " OR ".join(
    f"(event.from_state = '{before}' AND event.to_state = '{after}')" for before, after in sorted(TRANSITIONS)
)
# Only rows of a change; a wish about a task (cancel, delete) is an event from a state to itself.
_CHANGES = "SELECT task_id, from_state, to_state FROM videos_taskevent WHERE from_state <> to_state"

CLAIMS = [
    Rule(
        says="a live claim has its task, of the same owner and client id",
        sql="""
        SELECT claim.id, claim.owner_id, claim.client_id FROM tombstones_claim AS claim
        LEFT JOIN videos_videotask AS task ON task.id = claim.id
          AND task.owner_id = claim.owner_id AND task.client_id = claim.client_id
        WHERE claim.state = 'live' AND task.id IS NULL
        """,
    ),
    Rule(
        says="a task has a live claim",
        sql="""
        SELECT task.id, task.owner_id, claim.state FROM videos_videotask AS task
        LEFT JOIN tombstones_claim AS claim ON claim.id = task.id
        WHERE claim.id IS NULL OR claim.state <> 'live'
        """,
    ),
    Rule(
        says="a buried claim has no words, bodies or files left",
        sql="""
        SELECT claim.id, 'payload' AS has FROM tombstones_claim AS claim
        JOIN videos_payload AS payload ON payload.task_id = claim.id WHERE claim.state = 'buried'
        UNION ALL
        SELECT claim.id, 'bodies' FROM tombstones_claim AS claim
        JOIN videos_attempt AS attempt ON attempt.task_id = claim.id
        JOIN videos_attemptpayload AS bodies ON bodies.attempt_id = attempt.id WHERE claim.state = 'buried'
        UNION ALL
        SELECT claim.id, 'file' FROM tombstones_claim AS claim
        JOIN files_storedfile AS file ON file.task_id = claim.id WHERE claim.state = 'buried'
        """,
    ),
    Rule(
        says="an attempt belongs to a claim of its owner that was accepted",
        sql="""
        SELECT attempt.id, attempt.task_id, claim.reason FROM videos_attempt AS attempt
        LEFT JOIN tombstones_claim AS claim ON claim.id = attempt.task_id
          AND claim.owner_id = attempt.owner_id
        WHERE claim.id IS NULL OR claim.reason = 'abandoned'
        """,
    ),
]

MONEY = [
    Rule(
        says="an unresolved charge has an unfinished task",
        sql=f"""
        SELECT charge.claim_id, charge.amount_micros, task.state FROM billing_charge AS charge
        LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = charge.claim_id
        LEFT JOIN videos_videotask AS task ON task.id = charge.claim_id
        WHERE resolution.charge_id IS NULL
          AND (task.id IS NULL OR task.state NOT IN ({_quoted(UNFINISHED)}))
        """,
    ),
    Rule(
        says="an unfinished task has an unresolved charge of its owner",
        sql=f"""
        SELECT task.id, task.state, resolution.outcome FROM videos_videotask AS task
        LEFT JOIN billing_charge AS charge ON charge.claim_id = task.id AND charge.owner_id = task.owner_id
        LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = task.id
        WHERE task.state IN ({_quoted(UNFINISHED)})
          AND (charge.claim_id IS NULL OR resolution.charge_id IS NOT NULL)
        """,
    ),
    Rule(
        says="a completed task is settled",
        sql="""
        SELECT task.id, resolution.outcome FROM videos_videotask AS task
        LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = task.id
        WHERE task.state = 'completed' AND COALESCE(resolution.outcome, '') <> 'settled'
        """,
    ),
    Rule(
        says="a failed task was not charged, is refunded, or settled by the announced rule on refusals",
        sql="""
        SELECT task.id, task.error_code, charge.amount_micros, resolution.outcome
        FROM videos_videotask AS task
        LEFT JOIN billing_charge AS charge ON charge.claim_id = task.id
        LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = task.id
        WHERE task.state = 'failed' AND NOT (
          (task.error_code = 'insufficient_balance' AND charge.claim_id IS NULL)
          OR (task.error_code NOT IN ('insufficient_balance', 'output_withheld_charged')
              AND COALESCE(resolution.outcome, '') = 'refunded')
          OR (task.error_code = 'output_withheld_charged' AND COALESCE(resolution.outcome, '') = 'settled'
              AND charge.charges_on_refusal))
        """,
    ),
]

STATES = [
    Rule(
        says="every change of state is one of the table",
        sql=f"""
        SELECT event.id, event.task_id, event.from_state, event.to_state FROM videos_taskevent AS event
        WHERE event.from_state <> event.to_state AND NOT ({_LEGAL_CHANGE}
          OR (event.from_state = '' AND event.to_state IN ({_quoted(BIRTHS)})))
        """,
    ),
    # A task enters each state as often as it leaves it, but for the one it is in. This holds in whatever
    # order the events were written, so that clocks of several machines cannot raise a false alarm.
    Rule(
        says="the events of a task lead to the state it is in, and of a deleted one to a final state",
        sql=f"""
        SELECT claim.id, task.state, steps.state AS state_of_events, steps.surplus
        FROM tombstones_claim AS claim
        LEFT JOIN videos_videotask AS task ON task.id = claim.id
        LEFT JOIN (
          SELECT task_id, state, SUM(step) AS surplus FROM (
            SELECT task_id, to_state AS state, 1 AS step FROM ({_CHANGES}) AS entered
            UNION ALL
            SELECT task_id, from_state, -1 FROM ({_CHANGES}) AS left_behind WHERE from_state <> ''
          ) AS both_ways GROUP BY task_id, state HAVING SUM(step) <> 0
        ) AS steps ON steps.task_id = claim.id
        WHERE COALESCE(claim.reason, '') <> 'abandoned' AND (
          steps.state IS NULL OR steps.surplus <> 1
          OR (task.id IS NOT NULL AND steps.state <> task.state)
          OR (task.id IS NULL AND steps.state NOT IN ({_quoted(FINAL)})))
        """,
    ),
    Rule(
        says="a task is born once",
        sql="""
        SELECT task_id, COUNT(*) AS births FROM videos_taskevent WHERE from_state = ''
        GROUP BY task_id HAVING COUNT(*) <> 1
        """,
    ),
    Rule(
        says="leaving unknown has evidence",
        sql="""
        SELECT exits.task_id, exits.times, COALESCE(proofs.times, 0) AS evidence FROM (
          SELECT task_id, COUNT(*) AS times FROM videos_taskevent
          WHERE from_state = 'unknown' AND to_state <> 'unknown' GROUP BY task_id
        ) AS exits LEFT JOIN (
          SELECT task_id, COUNT(*) AS times FROM videos_evidence GROUP BY task_id
        ) AS proofs ON proofs.task_id = exits.task_id
        WHERE exits.times > COALESCE(proofs.times, 0)
        """,
    ),
]

ATTEMPTS = [
    Rule(
        says="a task has at most one accepted attempt, and exactly it has an upstream id",
        sql="""
        SELECT task_id, COUNT(*) AS accepted, SUM(CASE WHEN upstream_id IS NULL THEN 0 ELSE 1 END) AS ids
        FROM videos_attempt WHERE outcome = 'accepted' OR upstream_id IS NOT NULL
        GROUP BY task_id HAVING COUNT(*) <> 1 OR MIN(upstream_id) IS NULL OR MIN(outcome) <> 'accepted'
        """,
    ),
    Rule(
        says="a task that was accepted runs on an accepted attempt, and an unsent one has none",
        sql="""
        SELECT task.id, task.state, attempt.id AS attempt_id FROM videos_videotask AS task
        LEFT JOIN videos_attempt AS attempt ON attempt.task_id = task.id AND attempt.outcome = 'accepted'
        WHERE (task.state IN ('processing', 'completed') AND attempt.id IS NULL)
          OR (task.state IN ('submitting', 'unknown') AND attempt.id IS NOT NULL)
        """,
    ),
    Rule(
        says="the attempts of a task are numbered without a gap",
        sql="""
        SELECT task_id, COUNT(*) AS attempts, MAX(number) AS last_number FROM videos_attempt
        GROUP BY task_id HAVING COUNT(*) <> MAX(number)
        """,
    ),
]

FILES = [
    Rule(
        says="a completed task shows its result file",
        sql="""
        SELECT task.id, task.result_file_id FROM videos_videotask AS task
        LEFT JOIN files_storedfile AS file ON file.id = task.result_file_id
          AND file.task_id = task.id AND file.owner_id = task.owner_id
        WHERE file.id IS NULL AND (task.state = 'completed' OR task.result_file_id IS NOT NULL)
        """,
    ),
    Rule(
        says="a result file belongs to a completed task, or is a gift after a refund, with its evidence",
        sql="""
        SELECT file.id, file.task_id, task.state FROM files_storedfile AS file
        LEFT JOIN videos_videotask AS task ON task.id = file.task_id AND task.result_file_id = file.id
        LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = file.task_id
        WHERE file.kind = 'result' AND NOT COALESCE(task.state = 'completed' OR (
          task.state = 'failed' AND resolution.outcome = 'refunded' AND EXISTS (
            SELECT 1 FROM videos_evidence AS evidence
            WHERE evidence.task_id = file.task_id AND evidence.kind = 'late_result')), FALSE)
        """,
    ),
]


def _resends() -> Rule:
    return Rule(
        says="nothing is sent again after an unclear answer, unless the contract knows a repeated key",
        sql=f"""
        SELECT earlier.task_id, earlier.number, earlier.outcome, later.number AS later_number
        FROM videos_attempt AS earlier JOIN videos_attempt AS later
          ON later.task_id = earlier.task_id AND later.number > earlier.number
        WHERE earlier.outcome IN ('inflight', 'unclear', 'accepted')
          AND earlier.provider NOT IN ({_quoted(_providers_that_know_a_repeated_key())})
        """,
    )


RULES = [*CLAIMS, *MONEY, *STATES, *ATTEMPTS, _resends(), *FILES]
