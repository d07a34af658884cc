"""Guards taken away for the length of a test, to show what each of them is there for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection

from billing.models import Charge
from core import invariants
from tombstones.models import Claim
from videos import deletion, desk, operations
from videos.engine import dispatch, leases
from videos.models import VideoTask
from videos.states import State

Removal = Callable[[pytest.MonkeyPatch], None]


@contextmanager
def database_without(*, constraints: list[tuple[Any, str]], triggers: list[str]) -> Iterator[None]:
    """The test database without some of its constraints and triggers; whole again afterwards."""
    tables = {guard.name: guard.table for guard in invariants.declared()}
    found = [
        (model, next(item for item in model._meta.constraints if item.name == name))
        for model, name in constraints
    ]
    with connection.schema_editor() as editor:
        for model, constraint in found:
            editor.remove_constraint(model, constraint)
        for name in triggers:
            editor.execute(f"DROP TRIGGER {name} ON {tables[name]}")
    try:
        yield
    finally:
        call_command("flush", interactive=False, verbosity=0)
        with connection.schema_editor() as editor:
            for model, constraint in found:
                editor.add_constraint(model, constraint)
        invariants.install()


ONE_CLAIM = (Claim, "tombstones_one_claim_per_owner_and_client_id")
MAX_PRICE = (Charge, "billing_charge_within_max_price")
BURIAL = [
    "tombstones_claim_is_buried_only_when_its_task_may_go",
    "videos_task_is_deleted_only_when_final_and_buried",
]


def look_without_a_lock(task_id: UUID) -> VideoTask | None:
    return VideoTask.objects.filter(pk=task_id).first()


def nothing_else(patch: pytest.MonkeyPatch) -> None:
    """Only the database loses a guard."""


def forget_the_buried(patch: pytest.MonkeyPatch) -> None:
    """A submission looks for what is alive, and not for a tombstone."""
    view_of = operations.queries.view_of

    def view_of_the_living(*, owner_id: UUID, client_id: str) -> Any:
        view = view_of(owner_id=owner_id, client_id=client_id)
        return None if view is not None and view.is_buried else view

    patch.setattr(operations.queries, "view_of", view_of_the_living)


def cancel_without_the_task_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operations, "lock_task", look_without_a_lock)


def begin_without_lock_and_lease(patch: pytest.MonkeyPatch) -> None:
    """Unique attempts still keep it to one POST; what is lost is the one order of locks."""
    patch.setattr(dispatch, "lock_leased", lambda lease: look_without_a_lock(lease.task_id))


def end_without_the_task_lock(patch: pytest.MonkeyPatch) -> None:
    for module in (leases, desk, dispatch):
        patch.setattr(module, "lock_task", look_without_a_lock)


def delete_what_is_not_final(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deletion, "FINAL", frozenset(State))


def judge_without_the_allowed_price(patch: pytest.MonkeyPatch) -> None:
    judge = operations._judge
    patch.setattr(
        operations, "_judge", lambda request, now: judge(replace(request, max_price_micros=None), now)
    )


# Pair, what the product no longer does, constraints and triggers that back it up, the rule that breaks.
Removed = tuple[str, Removal, list[tuple[Any, str]], list[str], str]
REMOVED: list[Removed] = [
    ("submit/submit", nothing_else, [ONE_CLAIM], [], "one charge"),
    ("submit/delete", forget_the_buried, [ONE_CLAIM], [], "never a second charge"),
    ("submit/abandon", nothing_else, [ONE_CLAIM], [], "one claim"),
    ("dispatch/cancel", cancel_without_the_task_lock, [], [], "refunded or sent"),
    ("dispatch/sweeper", begin_without_lock_and_lease, [], [], "deadlock"),
    ("fail/settle", end_without_the_task_lock, [], [], "who lost was told"),
    ("give up/late answer", end_without_the_task_lock, [], [], "the answer is kept"),
    ("delete/complete", delete_what_is_not_final, [], BURIAL, "settled"),
    ("price change/submit", judge_without_the_allowed_price, [MAX_PRICE], [], "not more than allowed"),
]
