"""Every rule that the database enforces refuses raw SQL that breaks it, by its name."""

import pytest
from django.apps import apps
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import CheckConstraint, ForeignKey, UniqueConstraint

from core import invariants
from core.db import broken_rule
from tests.invariants.cases import CASES, GROUPS, Case
from tests.invariants.world import OUR_APPS, World, copied, undone
from videos.states import TRANSITIONS, Outcome, State

pytestmark = pytest.mark.django_db

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


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_raw_sql_that_breaks_a_rule_is_refused_by_its_name(
    world: World, subtests: pytest.Subtests, group: str
):
    for name, case in GROUPS[group].items():
        if case.only in (None, connection.vendor):
            with subtests.test(rule=name), undone():
                break_rule(world, name, case)


def break_rule(world: World, name: str, case: Case) -> None:
    *setup, breaking = world.statements([*case.setup, case.breaking])
    if case.is_unguarded:
        invariants.remove()
    with connection.cursor() as cursor:
        for statement in setup:
            cursor.execute(statement)
            assert cursor.rowcount == 1
    refused_by = refusal_of(breaking)
    if connection.vendor == "sqlite" and " or " in refused_by:
        assert name in refused_by.split(" or ")  # partial indexes on the same columns: SQLite names columns
    else:
        assert refused_by in (name, case.shadowed_by)


def test_a_state_change_that_is_not_in_the_table_is_refused(world: World, subtests: pytest.Subtests):
    """By the one guard that stands for the table: other rules would refuse some of them too."""
    forbidden = [(a, b) for a in State for b in State if a != b and (a, b) not in TRANSITIONS]
    assert len(forbidden) == 12
    name = "videos_task_changes_state_by_the_table"
    with undone(), connection.cursor() as cursor:
        invariants.remove()
        (guard,) = (guard for guard in invariants.declared() if guard.name == name)
        for statement in guard.statements(connection.vendor):
            cursor.execute(statement)
        for before, after in forbidden:
            with subtests.test(before=before, after=after):
                (statement,) = world.statements(
                    [f"UPDATE videos_videotask SET state = '{after}' WHERE id = '{{{before}}}'"]
                )
                assert refusal_of(statement) == name


def test_an_accepted_attempt_is_never_anything_else_again(world: World, subtests: pytest.Subtests):
    for after in set(Outcome) - {Outcome.ACCEPTED}:
        with subtests.test(after=after):
            (statement,) = world.statements(
                [f"UPDATE videos_attempt SET outcome = '{after}' WHERE id = '{{attempt_processing}}'"]
            )
            assert refusal_of(statement) == "videos_attempt_outcome_is_never_rewritten"


def test_an_unclear_attempt_is_never_in_flight_again(world: World):
    (statement,) = world.statements(
        ["UPDATE videos_attempt SET outcome = 'inflight', finished_at = NULL WHERE id = '{attempt_unknown}'"]
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
        cursor.execute(world.statements([refund])[0])
    (statement,) = world.statements(
        [
            "UPDATE videos_videotask SET state = 'completed', finished_at = created_at, "
            "next_check_at = NULL, result_file_id = '{file}' WHERE id = '{processing}'"
        ]
    )
    assert refusal_of(statement) == "videos_final_task_has_its_money_resolved"


def test_a_row_that_others_point_at_cannot_go_even_without_triggers(world: World, subtests: pytest.Subtests):
    assert len(FOREIGN_KEYS) >= 10
    for model, field in FOREIGN_KEYS:
        target = field.related_model._meta
        with subtests.test(field=f"{model.__name__}.{field.name}"), undone():
            invariants.remove()
            pointed_at = f"SELECT {field.column} FROM {model._meta.db_table} WHERE {field.column} IS NOT NULL"
            with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(f"DELETE FROM {target.db_table} WHERE {target.pk.column} IN ({pointed_at})")
                assert cursor.rowcount >= 1
                connection.check_constraints()
