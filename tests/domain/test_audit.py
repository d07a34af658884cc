"""The audit finds each kind of violation, made here by raw SQL with triggers and checks switched off."""

import io
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from billing.models import Transfer
from core import audit, invariants
from core.audit import TRIGGERS, declared_rules
from files.models import StoredFile
from tests import makers
from tests.conftest import IS_POSTGRESQL
from videos import desk, operations
from videos.audit import violations
from videos.deletion import delete_task
from videos.models import Attempt, VideoTask

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene(simulator: Any) -> dict[str, Any]:
    """An owner with a completed, a refunded, an unfinished and a never charged task, and a fenced id."""
    owner = makers.make_owner()
    completed = makers.submit(owner)
    makers.work()
    refunded = makers.submit(owner, prompt="a second one")
    operations.cancel(owner_id=owner.id, client_id=refunded, now=timezone.now())
    unfinished = makers.submit(owner, prompt="a third one")
    poor = makers.make_owner(balance="0")
    refused = makers.submit(poor)
    operations.abandon(owner_id=owner.id, client_id=makers.new_client_id(), now=timezone.now())
    return {
        "owner": owner,
        "completed": makers.task_of(owner, completed),
        "refunded": makers.task_of(owner, refunded),
        "unfinished": makers.task_of(owner, unfinished),
        "refused": makers.task_of(poor, refused),
    }


@contextmanager
def unguarded() -> Iterator[Callable[..., None]]:
    """Run raw SQL on a test database without triggers and CHECKs."""

    def run(sql: str, *values: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, [_as_stored(value) for value in values])
            assert cursor.rowcount > 0, f"nothing was changed by {sql}"

    with connection.cursor() as cursor:
        cursor.execute(
            "SET CONSTRAINTS ALL IMMEDIATE" if IS_POSTGRESQL else "PRAGMA ignore_check_constraints=ON"
        )
    try:
        with invariants.lifted_for_tests():
            yield run
    finally:
        if not IS_POSTGRESQL:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA ignore_check_constraints=OFF")


@contextmanager
def undone() -> Iterator[None]:
    """What is broken inside is whole again afterwards, constraints included."""
    savepoint = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(savepoint)


def without_check(table: str, name: str) -> None:
    """PostgreSQL has no switch for CHECKs; the test's transaction brings the constraint back."""
    if IS_POSTGRESQL:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")


def _as_stored(value: Any) -> Any:
    return value.hex if isinstance(value, uuid.UUID) and not IS_POSTGRESQL else value


def test_a_clean_database_has_no_violation(scene: dict[str, Any]) -> None:
    assert violations() == []


def test_an_empty_database_has_no_violation() -> None:
    assert violations() == []


# rule → (statements, constraints of PostgreSQL that stand in the way); {name} is a task of the scene
BREAKS: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "a live claim has its task, of the same owner and client id": (
        [
            "DELETE FROM videos_payload WHERE task_id = {refused}",
            "DELETE FROM videos_videotask WHERE id = {refused}",
        ],
        [],
    ),
    "a task has a live claim": (
        [
            "UPDATE tombstones_claim SET state = 'buried', reason = 'task_deleted', buried_at = created_at "
            "WHERE id = {completed}"
        ],
        [],
    ),
    "a buried claim has no words, bodies or files left": (
        [
            "UPDATE tombstones_claim SET state = 'buried', reason = 'task_deleted', "
            "buried_at = '2999-01-01 00:00:00+00' WHERE id = {completed}"
        ],
        [],
    ),
    "an attempt belongs to a claim of its owner that was accepted": (
        [
            "UPDATE tombstones_claim SET state = 'buried', reason = 'abandoned', "
            "buried_at = '2999-01-01 00:00:00+00' WHERE id = {completed}"
        ],
        [],
    ),
    "a charge belongs to a claim of its owner that was accepted": (
        ["UPDATE billing_charge SET owner_id = {stranger} WHERE claim_id = {unfinished}"],
        [],
    ),
    "a charge has exactly one charge transfer, of its amount": (
        ["DELETE FROM billing_transfer WHERE kind = 'charge' AND charge_id = {completed}"],
        [],
    ),
    "a transfer about a charge names its owner": (
        ["UPDATE billing_transfer SET owner_id = {stranger} WHERE kind = 'settle'"],
        [],
    ),
    "a transfer joins the accounts of its kind and has a whole, positive amount": (
        ["UPDATE billing_transfer SET debit = 'funding' WHERE kind = 'settle'"],
        [("billing_transfer", "billing_transfer_legs_fit_kind")],
    ),
    "a resolution divides its charge, and its transfers are exactly that": (
        ["UPDATE billing_resolution SET settled_micros = settled_micros - 1 WHERE charge_id = {completed}"],
        [],
    ),
    "what is returned never exceeds the charge, and goodwill follows a settlement": (
        [
            "UPDATE billing_transfer SET kind = 'goodwill', debit = 'revenue' "
            "WHERE kind = 'refund' AND charge_id = {refunded}"
        ],
        [],
    ),
    "clearing holds exactly each unresolved charge": (
        ["DELETE FROM billing_transfer WHERE kind = 'settle'"],
        [],
    ),
    "clearing in total equals the unresolved charges": (
        ["DELETE FROM billing_resolution WHERE charge_id = {refunded}"],
        [],
    ),
    "every balance is the sum of its owner's transfers and not negative": (
        ["UPDATE billing_account SET balance_micros = balance_micros + 1 WHERE owner_id = {owner}"],
        [],
    ),
    "nothing but its charge takes money from the owner for a task": (
        [
            "UPDATE billing_transfer SET kind = 'adjustment', debit = 'owner', credit = 'funding' "
            "WHERE kind = 'refund' AND charge_id = {refunded}"
        ],
        [],
    ),
    "the amount charged is unit price times quantity, at the frozen price, within max_price": (
        ["UPDATE billing_charge SET max_price_micros = amount_micros - 1 WHERE claim_id = {completed}"],
        [("billing_charge", "billing_charge_within_max_price")],
    ),
    "an unresolved charge has an unfinished task": (
        ["DELETE FROM billing_resolution WHERE charge_id = {completed}"],
        [],
    ),
    "an unfinished task has an unresolved charge of its owner": (
        [
            "UPDATE videos_videotask SET state = 'processing', finished_at = NULL, progress = NULL, "
            "next_check_at = created_at WHERE id = {completed}"
        ],
        [],
    ),
    "a completed task is settled": (
        [
            "UPDATE billing_resolution SET outcome = 'refunded', settled_micros = 0, "
            "returned_micros = settled_micros WHERE charge_id = {completed}"
        ],
        [],
    ),
    "a failed task was not charged, is refunded, or settled by the announced rule on refusals": (
        [
            "UPDATE videos_videotask SET error_code = 'output_withheld_charged' WHERE id = {refunded}",
        ],
        [],
    ),
    "every change of state is one of the table": (
        [
            "UPDATE videos_taskevent SET from_state = 'submitting' "
            "WHERE task_id = {completed} AND to_state = 'completed'"
        ],
        [],
    ),
    "the events of a task lead to the state it is in, and of a deleted one to a final state": (
        ["DELETE FROM videos_taskevent WHERE task_id = {completed} AND to_state = 'completed'"],
        [],
    ),
    "a task is born once": (
        ["DELETE FROM videos_taskevent WHERE task_id = {unfinished}", "{another_birth}", "{another_birth}"],
        [],
    ),
    "leaving unknown has evidence": (
        [
            "UPDATE videos_taskevent SET from_state = 'unknown' "
            "WHERE task_id = {completed} AND to_state = 'processing'"
        ],
        [],
    ),
    "a task has at most one accepted attempt, and exactly it has an upstream id": (
        ["UPDATE videos_attempt SET outcome = 'unclear' WHERE task_id = {completed}"],
        [("videos_attempt", "videos_accepted_attempt_has_an_upstream_id")],
    ),
    "a task that was accepted runs on an accepted attempt, and an unsent one has none": (
        ["UPDATE videos_attempt SET outcome = 'unclear', upstream_id = NULL WHERE task_id = {completed}"],
        [],
    ),
    "the attempts of a task are numbered without a gap": (
        ["UPDATE videos_attempt SET number = 3 WHERE task_id = {completed}"],
        [],
    ),
    "nothing is sent again after an unclear answer, unless the contract knows a repeated key": (
        ["{another_attempt}"],
        [],
    ),
    "a completed task shows its result file": (
        ["UPDATE videos_videotask SET result_file_id = {stranger} WHERE id = {completed}"],
        [],
    ),
    "a result file belongs to a completed task, or is a gift after a refund, with its evidence": (
        ["UPDATE files_storedfile SET task_id = {refunded}"],
        [],
    ),
    "a published object is shown by a file, and a file shows a published object": (
        ["DELETE FROM files_storedfile"],
        [],
    ),
}


def _statement(template: str, scene: dict[str, Any]) -> tuple[str, list[Any]]:
    """A statement with its values bound, in the order in which its `{names}` appear."""
    names = {
        **{name: scene[name].pk for name in ("completed", "refunded", "unfinished", "refused")},
        "owner": scene["owner"].id,
        "stranger": uuid.UUID(int=7),
    }
    if template == "{another_birth}":
        return (
            "INSERT INTO videos_taskevent (id, task_id, from_state, to_state, cause, actor, created_at) "
            "VALUES (%s, %s, '', 'submitting', '', '', '2026-01-01 00:00:00+00')",
            [uuid.uuid4(), names["unfinished"]],
        )
    if template == "{another_attempt}":
        columns = [field.column for field in Attempt._meta.concrete_fields]
        replaced = {"id": "%s", "number": "2", "outcome": "'not_sent'", "upstream_id": "NULL"}
        return (
            f"INSERT INTO videos_attempt ({', '.join(columns)}) "
            f"SELECT {', '.join(replaced.get(name, name) for name in columns)} "
            "FROM videos_attempt WHERE task_id = %s",
            [uuid.uuid4(), names["completed"]],
        )
    found = sorted((template.index(f"{{{name}}}"), name) for name in names if f"{{{name}}}" in template)
    for name in names:
        template = template.replace(f"{{{name}}}", "%s")
    return template, [names[name] for _, name in found]


def test_the_audit_finds_each_kind_of_violation(scene: dict[str, Any], subtests: pytest.Subtests) -> None:
    with unguarded() as run:
        for rule, (statements, checks) in BREAKS.items():
            with subtests.test(rule=rule), undone():
                for table, name in checks:
                    without_check(table, name)
                for template in statements:
                    sql, values = _statement(template, scene)
                    run(sql, *values)
                assert [line for line in violations() if line.startswith(f"{rule}: ")] != []
    assert violations() == []


def test_every_rule_is_broken_by_one_of_these_tests() -> None:
    """A rule that nothing can break would protect nothing."""
    assert {rule.says for rule in declared_rules()} == set(BREAKS)


def test_a_trigger_that_is_missing_is_a_violation(scene: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        on = " ON billing_account" if IS_POSTGRESQL else ""
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE" if IS_POSTGRESQL else "SELECT 1")
        cursor.execute(f"DROP TRIGGER billing_account_opens_empty{on}")
    try:
        assert violations() == [f"{TRIGGERS}: trigger=billing_account_opens_empty"]
    finally:
        invariants.install()


def test_a_violation_names_ids_as_people_and_other_systems_write_them(scene: dict[str, Any]) -> None:
    with unguarded() as run:
        run(
            "UPDATE billing_account SET balance_micros = balance_micros + 1 WHERE owner_id = %s",
            scene["owner"].id,
        )
    held = scene["owner"].balance_micros
    assert violations() == [
        "every balance is the sum of its owner's transfers and not negative: "
        f"owner_id={scene['owner'].id} balance_micros={held} sum_of_transfers={held - 1}"
    ]


def test_a_task_that_was_unknown_and_sent_again_and_then_deleted_breaks_nothing(simulator: Any) -> None:
    owner = makers.make_owner()
    simulator.add_fault({"drop_before_accept": "reset"}, times=1)
    client_id = makers.submit(owner, model=makers.BLIND_MODEL)
    makers.work(1)
    task = makers.task_of(owner, client_id)
    assert task.state == "unknown"
    desk.declare_never_received(
        task_id=task.pk, resend=True, actor="ann", reason="asked by phone", now=timezone.now()
    )
    makers.work()
    assert makers.task_of(owner, client_id).state == "completed"
    assert violations() == []
    delete_task(owner_id=owner.id, client_id=client_id, now=timezone.now())
    assert (VideoTask.objects.count(), Attempt.objects.count()) == (0, 2)
    assert violations() == []


# --- the command ----------------------------------------------------------------------------------


def run_audit(*arguments: str) -> tuple[int, list[str]]:
    out = io.StringIO()
    try:
        call_command("audit", *arguments, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue().splitlines()
    return 0, out.getvalue().splitlines()


def test_the_command_prints_a_line_per_invariant_and_ends_well(scene: dict[str, Any]) -> None:
    code, lines = run_audit()
    assert code == 0
    assert lines[-1] == f"{len(lines) - 1} invariants, 0 violations."
    assert [line for line in lines[:-1] if not line.startswith("ok: ")] == []
    assert len(lines) - 1 == len(declared_rules()) + 2


def test_the_command_exits_1_and_names_each_violation(scene: dict[str, Any]) -> None:
    with unguarded() as run:
        run("DELETE FROM billing_transfer WHERE kind = 'top_up'")
    code, lines = run_audit("--rows-only")
    assert code == 1
    assert "1 broken: every balance is the sum of its owner's transfers and not negative" in lines
    assert [line for line in lines if line.startswith(f"  owner_id={scene['owner'].id}")] != []
    assert lines[-1].endswith("invariants, 1 violations.")


def test_bytes_that_no_row_knows_are_a_note_and_bytes_that_are_lost_a_violation(
    scene: dict[str, Any],
) -> None:
    default_storage.save("results/left-behind.mp4", ContentFile(b"x"))
    code, lines = run_audit()
    assert code == 0
    assert "note: no file shows the stored bytes results/left-behind.mp4" in lines
    key = _key_of(scene["completed"])
    default_storage.delete(key)
    code, lines = run_audit()
    assert code == 1
    assert f"  key={key}" in lines


def _key_of(task: VideoTask) -> str:
    return StoredFile.objects.get(task_id=task.pk).stored_id


# --- one snapshot, and nobody waits ---------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(IS_POSTGRESQL, reason="needs SQLite, whose writers exclude each other")
def test_the_audit_runs_while_a_writer_holds_the_lock_of_sqlite() -> None:
    owner = makers.make_owner()
    writer = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE billing_account SET in_flight_limit = 5")
        assert violations() == []
        writer.execute("ROLLBACK")
    finally:
        writer.close()
    assert owner.balance_micros == 100_000_000


@pytest.mark.django_db(transaction=True)
def test_a_writer_commits_while_the_audit_reads_and_is_not_seen_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = makers.make_owner()
    first, *others = audit.declared_rules()
    seen: list[int] = []

    def rules_with_a_writer_between() -> Iterator[audit.Rule]:
        yield first
        makers.top_up(owner.user, "1")  # waits for nothing, or this test runs into its time limit
        seen.append(Transfer.objects.count())
        yield audit.Rule(says="transfers", sql="SELECT COUNT(*) AS transfers FROM billing_transfer")
        yield from others

    monkeypatch.setattr(audit, "declared_rules", rules_with_a_writer_between)
    lines = violations()
    assert seen == [2]
    assert lines == ["transfers: transfers=1"]
