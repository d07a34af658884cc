"""One valid state with a row of every kind, and SQL that copies its rows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.apps import apps
from django.db import connection, transaction
from django.utils import timezone

from billing import operations as billing
from core.ids import new_id
from files.models import StoredFile
from tests import makers
from tests.makers import Owner
from videos import deletion, operations
from videos.models import Attempt, Evidence, OrphanJob, ProviderStatus, WebhookCall

OUR_APPS = ("accounts", "tombstones", "billing", "files", "videos")


@dataclass(frozen=True, kw_only=True)
class World:
    """Ids of rows, as both databases take them in SQL: 32 hexadecimal digits, to be quoted."""

    owner: Owner
    ids: dict[str, str]

    def statements(self, statements: Sequence[str]) -> list[str]:
        """The statements with the ids of rows; `{fresh}` is an id of no row, and the same in all."""
        fresh = {f"fresh{number}": new_id().hex for number in ("", 1, 2)}
        return [statement.format_map({**self.ids, **fresh}) for statement in statements]


def build_world() -> World:
    """An owner with a task in every state, and a row in every table; everything made by operations."""
    owner = makers.make_owner()
    client_ids = {
        "completed": makers.submit(owner),
        "failed": makers.submit(owner, prompt='a [sim: fail="bad luck"]'),
        "processing": makers.submit(owner, prompt="a [sim: run_forever]"),
        "unknown": makers.submit(owner, model=makers.BLIND_MODEL, prompt="a [sim: drop_after_accept=reset]"),
        "deleted": makers.submit(owner, prompt="to be deleted"),
    }
    makers.work(2)
    client_ids["submitting"] = makers.submit(owner, prompt="waits for a worker")
    states = {name: makers.task_of(owner, client_id).state for name, client_id in client_ids.items()}
    assert states == {name: name for name in states} | {"deleted": "completed"}
    ids = {name: makers.view(owner, client_id).claim.pk for name, client_id in client_ids.items()}
    now = timezone.now()
    deletion.delete_task(owner_id=owner.id, client_id=client_ids["deleted"], now=now)
    ids["abandoned"] = operations.abandon(
        owner_id=owner.id, client_id=makers.new_client_id(), now=now
    ).claim.pk
    billing.give_goodwill(
        charge_id=ids["completed"],
        amount_micros=1,
        returned_shown_micros=0,
        reference="sorry",
        actor="tests",
        reason="a test",
        now=now,
    )
    ids |= {f"attempt_{name}": attempt_of(ids[name]) for name in ("processing", "unknown", "deleted")}
    _fill_the_other_tables(ids["processing"])
    ids["file"] = StoredFile.objects.get(task_id=ids["completed"]).pk
    return World(owner=owner, ids={"owner": owner.id.hex, **{name: key.hex for name, key in ids.items()}})


def attempt_of(task_id: UUID) -> UUID:
    return Attempt.objects.get(task_id=task_id).pk


def _fill_the_other_tables(task_id: UUID) -> None:
    """Rows that only rare faults make; their own constraints are under test, not how they come about."""
    now = timezone.now()
    WebhookCall.objects.create(task_id=task_id, upstream_id="job-of-a-call", word="OK", received_at=now)
    OrphanJob.objects.create(
        provider_account="main", upstream_id="orphan", task_id=task_id, source="tests", created_at=now
    )
    Evidence.objects.create(task_id=task_id, kind="person", source="tests", created_at=now)
    ProviderStatus.objects.create(provider="a-quiet-provider")


def copied(table: str, where: str, *, verb: str = "INSERT", **changes: str) -> str:
    """SQL that inserts a copy of the row `where`, with SQL expressions in place of some columns."""
    model = next(model for model in apps.get_models() if model._meta.db_table == table)
    columns = [field.column for field in model._meta.concrete_fields]
    assert set(changes) <= set(columns), f"{table} has no {set(changes) - set(columns)}"
    values = ", ".join(changes.get(column, column) for column in columns)
    return f"{verb} INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {where}"


@contextmanager
def undone() -> Iterator[None]:
    """What happens inside is undone, dropped triggers included."""
    connection.check_constraints()  # what waits for the commit would keep triggers from being dropped
    savepoint = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(savepoint)
