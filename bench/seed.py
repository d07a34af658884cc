"""A past made by set-based SQL: finished tasks with all that belongs to them, and tombstones.

Triggers and foreign keys are not asked (`session_replication_role`), which needs a superuser; the rows are
those the product would have made, but for stored files and the bodies of attempts, which nothing measured
here looks at. So `audit` is not for these databases.
"""

import time
from dataclasses import dataclass

import psycopg


@dataclass(frozen=True, kw_only=True)
class Past:
    """`tasks` finished tasks, of which every `share`th is the measured owner's; every `failing`th of those
    failed. The others belong to `strangers`, and one of a hundred failed.
    """

    tasks: int
    tombstones: int
    share: int
    failing: int
    strangers: int


LARGE = Past(tasks=1_000_000, tombstones=100_000, share=100, failing=100, strangers=1000)
# Not quite empty: a list shows as many rows on both sides, and so costs the same to show.
SMALL = Past(tasks=200, tombstones=0, share=1, failing=4, strangers=0)

# Ids lie before those of today in every index, as older UUIDs of version 7 do.
_OLD = "'0100000{kind}-0000-7000-8000-'"
_SOURCE = """
CREATE TEMPORARY TABLE past AS
SELECT i, {task}::uuid AS task,
       CASE WHEN i % {share} = 0 THEN '{owner}'::uuid ELSE {stranger}::uuid END AS owner,
       md5(i::text)::uuid::text AS client_id,
       (i % ({share} * {failing}) = 0 OR (i % {share} <> 0 AND i % 100 = 50)) AS failed,
       now() - ({tasks} - i) * interval '20 seconds' - interval '1 day' AS at
FROM generate_series(1, {tasks}) AS i
"""
_PRICE = "4160000"
_ROWS = (
    (
        "accounts_user (id, password, is_superuser, username, first_name, last_name, email, is_staff, "
        "is_active, date_joined, language)",
        "SELECT {stranger}::uuid, '!', false, 'stranger-' || i, '', '', '', false, true, now(), '' "
        "FROM generate_series(0, {strangers} - 1) AS i",
    ),
    (
        "billing_account (owner_id, balance_micros, created_at)",
        "SELECT {stranger}::uuid, 1000000000, now() FROM generate_series(0, {strangers} - 1) AS i",
    ),
    (
        "tombstones_claim (id, owner_id, client_id, state, created_at)",
        "SELECT task, owner, client_id, 'live', at FROM past",
    ),
    (
        "tombstones_claim (id, owner_id, client_id, state, reason, created_at, buried_at)",
        "SELECT {tombstone}::uuid, CASE WHEN i % {share} = 0 THEN '{owner}'::uuid ELSE {stranger}::uuid END, "
        "md5('t' || i)::uuid::text, 'buried', 'abandoned', now() - interval '2 days', "
        "now() - interval '2 days' FROM generate_series(1, {tombstones}) AS i",
    ),
    (
        "videos_videotask (id, owner_id, client_id, request_hash, provider, model, seconds, resolution, "
        "aspect_ratio, audio, state, created_at, entered_state_at, accepted_at, finished_at, error_code, "
        "error_params, error_detail, tries, paused_seconds_before, phase, progress, result_file_id)",
        "SELECT task, owner, client_id, '1:' || repeat(md5(i::text), 2), 'fal', 'veo3.1', 8, '720p', '16:9', "
        "true, CASE WHEN failed THEN 'failed' ELSE 'completed' END, at, at, at + interval '1 second', "
        "at + interval '1 minute', CASE WHEN failed THEN 'provider_failed' END, '{{}}', '', 0, 0, "
        "CASE WHEN NOT failed THEN 'storing' END, CASE WHEN NOT failed THEN 100 END, "
        "CASE WHEN NOT failed THEN {file}::uuid END FROM past",
    ),
    (
        "videos_payload (task_id, prompt, request)",
        "SELECT task, 'a cat on a roof', "
        """'{{"model": "veo3.1", "prompt": "a cat on a roof", "seconds": 8}}' FROM past""",
    ),
    (
        "videos_taskevent (id, task_id, from_state, to_state, cause, actor, created_at)",
        "SELECT {event}::uuid, task, from_state, to_state, cause, 'owner', at FROM past, LATERAL (VALUES "
        "(0, '', 'submitting', 'submitted'), (1, 'submitting', 'processing', 'accepted'), "
        "(2, 'processing', CASE WHEN failed THEN 'failed' ELSE 'completed' END, 'ended')"
        ") AS change (part, from_state, to_state, cause)",
    ),
    (
        "videos_attempt (id, task_id, owner_id, number, key, request_sha256, provider, provider_account, "
        "model, outcome, reason, upstream_id, handles, http_status, response_sha256, usage_unit, started_at, "
        "finished_at)",
        "SELECT {attempt}::uuid, task, owner, 1, 'or_' || left(repeat(md5(i::text), 2), 40), "
        "repeat(md5(i::text), 2), 'fal', 'fal:0123456789abcdef', 'veo3.1', 'accepted', '', "
        "md5('u' || i)::uuid::text, '{{}}', 200, repeat(md5(i::text), 2), '', at, at + interval '1 second' "
        "FROM past",
    ),
    (
        "billing_charge (claim_id, owner_id, amount_micros, price_version_id, unit_price_micros, quantity, "
        "charges_on_refusal, provider, model, created_at)",
        f"SELECT task, owner, {_PRICE}, (SELECT id FROM billing_priceversion LIMIT 1), {_PRICE} / 8, 8, "
        "false, 'fal', 'veo3.1', at FROM past",
    ),
    (
        "billing_resolution (charge_id, outcome, settled_micros, returned_micros, cause, actor, created_at)",
        f"SELECT task, CASE WHEN failed THEN 'refunded' ELSE 'settled' END, CASE WHEN failed THEN 0 ELSE "
        f"{_PRICE} END, CASE WHEN failed THEN {_PRICE} ELSE 0 END, 'ended', 'system', at FROM past",
    ),
    (
        "billing_transfer (id, kind, reference, amount_micros, debit, credit, owner_id, charge_id, actor, "
        "note, created_at)",
        f"SELECT {{transfer}}::uuid, kind, task::text, {_PRICE}, debit, credit, owner, task, 'owner', '', at "
        "FROM past, LATERAL (VALUES (0, 'charge', 'owner', 'clearing'), "
        "(1, CASE WHEN failed THEN 'refund' ELSE 'settle' END, 'clearing', "
        "CASE WHEN failed THEN 'owner' ELSE 'revenue' END)) AS leg (part, kind, debit, credit)",
    ),
)


def seed(connection: psycopg.Connection, past: Past, *, owner_id: str) -> str:
    """Make the past of one database; what was made, in words."""
    began = time.monotonic()
    words = {
        "owner": owner_id,
        "task": _id(1, "i"),
        "tombstone": _id(2, "i"),
        "file": _id(3, "i"),
        "attempt": _id(4, "i"),
        "event": _id(5, "i * 4 + part"),
        "transfer": _id(6, "i * 2 + part"),
        "stranger": _id(7, f"i % {max(past.strangers, 1)}"),
        **{name: getattr(past, name) for name in ("tasks", "tombstones", "share", "failing", "strangers")},
    }
    connection.execute("SET session_replication_role = replica")
    connection.execute("SET synchronous_commit = off")
    connection.execute(_SOURCE.format(**words))
    for columns, rows in _ROWS:
        connection.execute(f"INSERT INTO {columns} {rows.format(**words)}")
    connection.execute("DROP TABLE past")
    connection.execute("VACUUM ANALYZE")
    connection.execute("CHECKPOINT")  # what was written is not to be written during the measurement
    [(size,)] = connection.execute("SELECT pg_database_size(current_database())").fetchall()
    return (
        f"{past.tasks} tasks and {past.tombstones} tombstones in {size / 2**30:.1f} GiB, "
        f"made in {time.monotonic() - began:.0f} s"
    )


def _id(kind: int, number: str) -> str:
    return f"({_OLD.format(kind=kind)} || lpad(to_hex({number}), 12, '0'))"
