"""Triggers outlive migrations, their loss is seen, and nothing but a test may lift them."""

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction

from billing.models import Transfer
from core import invariants
from core.db import broken_rule
from tests import makers
from tests.invariants.world import OUR_APPS, World, copied
from tombstones.models import Claim

IS_SQLITE = connection.vendor == "sqlite"
MONEY_COLUMNS = [
    (model, field)
    for model in apps.get_models()
    if model._meta.app_label in OUR_APPS
    for field in model._meta.local_fields
    if field.name.endswith("_micros")
]
FRACTION = "1000000000000.5"  # within every other rule on amounts
REPLACED = {
    "tombstones_claim": "id = '{abandoned}'",
    "billing_account": "owner_id = '{owner}'",
    "billing_priceversion": "model = 'kling-2.5-turbo'",
    "billing_charge": "claim_id = '{completed}'",
    "billing_resolution": "charge_id = '{completed}'",
    "billing_transfer": "kind = 'top_up' AND owner_id = '{owner}'",
    "files_storedobject": "state = 'published'",
    "videos_videotask": "id = '{submitting}'",
    "videos_evidence": "task_id = '{processing}'",
    "videos_taskevent": "task_id = '{completed}'",
    "videos_orphanjob": "upstream_id = 'orphan'",
}


@pytest.fixture
def triggers_put_back(transactional_db):
    yield
    invariants.install()
    assert invariants.missing() == []


@pytest.mark.skipif(not IS_SQLITE, reason="INSERT OR REPLACE exists on SQLite alone")
@pytest.mark.django_db
def test_no_permanent_row_can_be_replaced_even_without_recursive_triggers(
    world: World, subtests: pytest.Subtests
):
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA recursive_triggers = OFF")
        try:
            for table, where in REPLACED.items():
                with subtests.test(table=table):
                    statements = [copied(table, where, verb="INSERT OR REPLACE")]
                    if table == "billing_account":
                        statements[0] = copied(table, where, verb="INSERT OR REPLACE", balance_micros="0")
                    (statement,) = world.statements(statements)
                    with pytest.raises(IntegrityError) as refused, transaction.atomic():
                        cursor.execute(statement)
                    assert broken_rule(refused.value).endswith("_is_never_replaced")
        finally:
            cursor.execute("PRAGMA recursive_triggers = ON")


@pytest.mark.skipif(not IS_SQLITE, reason="INSERT OR REPLACE exists on SQLite alone")
@pytest.mark.django_db
def test_without_the_guard_and_recursive_triggers_a_replaced_row_is_lost(world: World):
    """What the guards are for: the row that holds the key goes, and no DELETE trigger is asked."""
    (statement,) = world.statements(
        [
            copied(
                "billing_transfer", REPLACED["billing_transfer"], verb="INSERT OR REPLACE", amount_micros="7"
            )
        ]
    )
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA recursive_triggers = OFF")
        cursor.execute("DROP TRIGGER billing_transfer_is_never_replaced")
        try:
            cursor.execute(statement)
        finally:
            cursor.execute("PRAGMA recursive_triggers = ON")
    assert Transfer.objects.get(kind="top_up").amount_micros == 7


@pytest.mark.skipif(not IS_SQLITE, reason="the column types of PostgreSQL hold no fraction at all")
@pytest.mark.django_db
def test_a_fraction_of_a_micro_is_refused_in_every_money_column(world: World, subtests: pytest.Subtests):
    assert len(MONEY_COLUMNS) >= 10
    invariants.remove()
    for model, field in MONEY_COLUMNS:
        with subtests.test(column=f"{model._meta.db_table}.{field.column}"):
            statement = f"UPDATE {model._meta.db_table} SET {field.column} = {FRACTION}"
            with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(statement)
                assert cursor.rowcount == 0, "a fraction was stored"


@pytest.mark.django_db(transaction=True)
def test_migrating_again_keeps_the_triggers():
    before = invariants.installed()
    call_command("migrate", verbosity=0)
    assert invariants.installed() == before
    assert invariants.missing() == []


@pytest.mark.django_db(transaction=True)
def test_asking_for_the_plan_of_a_migration_touches_no_trigger(capsys):
    with connection.cursor() as cursor:
        drop_trigger(cursor, "billing_transfer_is_never_changed", "billing_transfer")
    try:
        call_command("migrate", plan=True, verbosity=0)
        assert invariants.missing() == ["billing_transfer_is_never_changed"]
    finally:
        invariants.install()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("app", ["videos", "files"])
def test_migrating_back_and_forth_brings_the_triggers_back(app: str):
    try:
        call_command("migrate", app, "zero", verbosity=0)
        assert f"{app}_" not in " ".join(connection.introspection.table_names())
    finally:
        call_command("migrate", verbosity=0)
    assert invariants.missing() == []


@pytest.mark.django_db(transaction=True)
def test_a_table_that_loses_its_triggers_gets_them_back_with_migrate(triggers_put_back):
    names = [guard.name for guard in invariants.declared() if guard.table == "tombstones_claim"]
    with connection.cursor() as cursor:
        for name in names:
            drop_trigger(cursor, name, "tombstones_claim")
    assert invariants.missing() == names
    call_command("migrate", verbosity=0)
    assert invariants.missing() == []


def drop_trigger(cursor, name: str, table: str) -> None:
    cursor.execute(f"DROP TRIGGER {name}" + ("" if IS_SQLITE else f" ON {table}"))


@pytest.mark.django_db
def test_an_altered_trigger_counts_as_missing():
    name, table = "billing_charge_is_never_removed", "billing_charge"
    (guard,) = (guard for guard in invariants.declared() if guard.name == name)
    with connection.cursor() as cursor:
        drop_trigger(cursor, name, table)
        for statement in guard.statements(connection.vendor):
            cursor.execute(statement.replace("(TRUE)", "(FALSE)"))
    assert invariants.missing() == [name]
    invariants.install()
    assert invariants.missing() == []


@pytest.mark.skipif(IS_SQLITE, reason="SQLite has neither disabled triggers nor conditions apart from them")
@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE billing_charge DISABLE TRIGGER billing_charge_is_never_removed",
        "CREATE OR REPLACE TRIGGER billing_charge_is_never_removed BEFORE DELETE ON billing_charge "
        "FOR EACH ROW WHEN (OLD.amount_micros < 0) EXECUTE FUNCTION billing_charge_is_never_removed()",
        "CREATE OR REPLACE TRIGGER billing_charge_is_never_removed AFTER DELETE ON billing_charge "
        "FOR EACH ROW EXECUTE FUNCTION billing_charge_is_never_removed()",
    ],
    ids=["disabled", "only for some rows", "after the fact"],
)
def test_a_trigger_that_does_not_fire_as_declared_counts_as_missing(statement: str):
    with connection.cursor() as cursor:
        cursor.execute(statement)
    assert invariants.missing() == ["billing_charge_is_never_removed"]


@pytest.mark.django_db
def test_flush_is_refused_on_a_database_that_is_no_test_database(monkeypatch: pytest.MonkeyPatch):
    owner = makers.make_owner(balance="10")
    client_id = makers.submit(owner)
    monkeypatch.setitem(connection.settings_dict, "NAME", "oncereel")
    with pytest.raises(CommandError, match="Nothing was deleted"):
        call_command("flush", interactive=False, verbosity=0)
    assert invariants.missing() == []
    assert Claim.objects.get().client_id == client_id
    assert Transfer.objects.count() == 2


@pytest.mark.django_db
def test_a_raised_error_inside_the_back_door_still_puts_the_triggers_back():
    with pytest.raises(DatabaseError), invariants.lifted_for_tests():
        assert invariants.installed() == {}
        raise DatabaseError
    assert invariants.missing() == []
