"""Every rule that the database enforces refuses raw SQL that breaks it, by its name."""

import pytest
from django.apps import apps
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import CheckConstraint, ForeignKey, UniqueConstraint
from tests.invariants.cases import CASES, Case
from tests.invariants.world import OUR_APPS, World, copied

from core import invariants
from core.db import broken_rule
from videos.states import OUTCOME_CHANGES, TRANSITIONS, Outcome, State

MODELS = [model for model in apps.get_models() if model._meta.app_label in OUR_APPS]
FOREIGN_KEYS = [
    (model, field) for model in MODELS for field in model._meta.local_fields if isinstance(field, ForeignKey)
]


def declared_constraints() -> set[str]:
    return {
        constraint.name
        for model in MODELS
        for constraint in model._meta.constraints
        if isinstance(constraint, CheckConstraint | UniqueConstraint)
    }


def every_guard() -> set[str]:
    """The guards of both databases."""
    names: set[str] = set()
    for app in OUR_APPS:
        if app != "accounts":
            module = __import__(f"{app}.invariants", fromlist=["GUARDS"])
            names |= {guard.name for guard in module.GUARDS}
    return names


def refusal_of(statement: str) -> str:
    """The rule that refuses a statement; the statement is undone."""
    with pytest.raises(DatabaseError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.rowcount != 0, "the statement met no row, so nothing was tested"
        connection.check_constraints()
    return broken_rule(refused.value)


def test_every_declared_rule_has_a_case_and_every_case_a_rule():
    assert set(CASES) == declared_constraints() | every_guard()


def test_the_guards_of_this_database_are_all_installed(world: World):
    assert invariants.missing() == []
    assert {guard.name for guard in invariants.declared()} <= every_guard()


def test_the_constraints_are_all_in_the_database(world: World):
    with connection.cursor() as cursor:
        present = {
            name
            for model in MODELS
            for name in connection.introspection.get_constraints(cursor, model._meta.db_table)
        }
    assert declared_constraints() - present == set()


@pytest.mark.parametrize("name", sorted(CASES))
def test_raw_sql_that_breaks_a_rule_is_refused_by_its_name(world: World, name: str):
    case: Case = CASES[name]
    if case.only not in (None, connection.vendor):
        assert name not in {guard.name for guard in invariants.declared()} or case.only is None
        return
    statements = [world.sql("\x00".join([*case.setup, case.breaking]))]
    *setup, breaking = statements[0].split("\x00")
    with connection.cursor() as cursor:
        if case.is_unguarded:
            invariants.remove()
        for statement in setup:
            cursor.execute(statement)
            assert cursor.rowcount == 1
    refused_by = refusal_of(breaking)
    if connection.vendor == "sqlite" and " or " in refused_by:
        assert name in refused_by.split(" or ")  # two partial indexes on the same columns: SQLite names columns
    else:
        assert refused_by in (name, case.shadowed_by)


@pytest.mark.parametrize(
    ("before", "after"),
    sorted((a, b) for a in State for b in State if a != b and (a, b) not in TRANSITIONS),
)
def test_a_state_change_that_is_not_in_the_table_is_refused(world: World, before: State, after: State):
    statement = world.sql(f"UPDATE videos_videotask SET state = '{after}' WHERE id = '{{{before}}}'")
    assert refusal_of(statement) == "videos_task_changes_state_by_the_table"


@pytest.mark.parametrize(
    "after", sorted(to for to in Outcome if (Outcome.ACCEPTED, to) not in OUTCOME_CHANGES and to != "accepted")
)
def test_an_accepted_attempt_is_never_anything_else_again(world: World, after: Outcome):
    statement = world.sql(
        f"UPDATE videos_attempt SET outcome = '{after}' WHERE id = '{{attempt_processing}}'"
    )
    assert refusal_of(statement) == "videos_attempt_outcome_is_never_rewritten"


def test_an_unclear_attempt_is_never_in_flight_again(world: World):
    statement = world.sql(
        "UPDATE videos_attempt SET outcome = 'inflight', finished_at = NULL WHERE id = '{attempt_unknown}'"
    )
    assert refusal_of(statement) == "videos_attempt_outcome_is_never_rewritten"


def test_a_completed_task_with_a_refund_is_refused(world: World):
    """Money was given back: the task may then fail, and never be completed."""
    refund = copied(
        "billing_resolution",
        "charge_id = '{completed}'",
        charge_id="'{processing}'",
        outcome="'refunded'",
        settled_micros="0",
        returned_micros="settled_micros",
    )
    with connection.cursor() as cursor:
        cursor.execute(world.sql(refund))
    statement = world.sql(
        "UPDATE videos_videotask SET state = 'completed', finished_at = created_at, next_check_at = NULL, "
        "result_file_id = '{file}' WHERE id = '{processing}'"
    )
    assert refusal_of(statement) == "videos_final_task_has_its_money_resolved"


@pytest.mark.parametrize(
    ("model", "field"), FOREIGN_KEYS, ids=[f"{model.__name__}.{field.name}" for model, field in FOREIGN_KEYS]
)
def test_a_row_that_others_point_at_cannot_go_even_without_triggers(world: World, model, field):
    invariants.remove()
    target = field.related_model._meta
    statement = (
        f"DELETE FROM {target.db_table} WHERE {target.pk.column} IN "
        f"(SELECT {field.column} FROM {model._meta.db_table} WHERE {field.column} IS NOT NULL)"
    )
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.rowcount >= 1
        connection.check_constraints()
