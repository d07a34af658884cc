"""Another session holds the lock for longer than a request waits: 503, nothing is changed, and the same
request again is taken once.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client

from accounts.models import ApiToken
from billing.models import Account, Charge, Resolution, Transfer
from tests import makers
from tests.conftest import IS_POSTGRESQL
from tests.invariants_check import violations
from tests.makers import Owner
from tombstones.models import Claim
from videos.models import TaskEvent, VideoTask

pytestmark = pytest.mark.django_db(transaction=True)

WAIT_MS = 200  # in place of the product's 20 s (SQLite) and 10 s (PostgreSQL)
ROWS = (Claim, VideoTask, Charge, Resolution, Transfer, TaskEvent, Account)
# On PostgreSQL readers pass it and every writer waits, as with SQLite's one lock.
LOCK = "LOCK TABLE billing_account, tombstones_claim, videos_videotask IN EXCLUSIVE MODE"


@contextmanager
def held_lock() -> Iterator[None]:
    """A session of its own holds what writers need, and changes nothing."""
    connection.ensure_connection()
    with connection.cursor() as cursor:
        if IS_POSTGRESQL:
            cursor.execute(f"SET lock_timeout = '{WAIT_MS}ms'")
        else:
            cursor.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
    try:
        if IS_POSTGRESQL:
            with psycopg.connect(**_parameters()) as holder:
                holder.execute(LOCK)
                yield
                holder.rollback()
        else:
            lock = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
            try:
                lock.execute("BEGIN IMMEDIATE")
                yield
            finally:
                lock.close()
    finally:
        connection.close()  # the next one has the product's own limits again


def _parameters() -> dict[str, Any]:
    names = ("host", "port", "user", "password", "dbname")
    given = connection.get_connection_params()
    return {name: given[name] for name in names if name in given}


def everything() -> list[list[dict[str, Any]]]:
    """Every row that tells of ids, states and money."""
    return [list(model._default_manager.order_by("pk").values()) for model in ROWS]


@pytest.fixture
def owner(db: None) -> Owner:
    owner = makers.make_owner()
    owner.api.raise_request_exception = False
    # Notes the token's use: a write of its own, which would meet the lock before what is tested does.
    assert owner.api.get("/api/account").status_code == 200
    return owner


def submit(owner: Owner, client_id: str) -> Any:
    return makers.post(owner, makers.order(id=client_id))


def abandon(owner: Owner, client_id: str) -> Any:
    return owner.api.post(f"/api/videos/{client_id}/abandon")


def cancel(owner: Owner, client_id: str) -> Any:
    return owner.api.post(f"/api/videos/{client_id}/cancel")


def delete(owner: Owner, client_id: str) -> Any:
    return owner.api.delete(f"/api/videos/{client_id}")


def nothing_before(owner: Owner) -> str:
    return makers.new_client_id()


def waiting(owner: Owner) -> str:
    return makers.submit(owner)


def completed(owner: Owner) -> str:
    client_id = makers.submit(owner)
    makers.work()
    assert makers.task_of(owner, client_id).state == "completed"
    return client_id


@pytest.mark.parametrize(
    ("prepare", "send", "status_after"),
    [
        (nothing_before, submit, 201),
        (nothing_before, abandon, 200),
        (waiting, cancel, 200),
        (completed, delete, 204),
    ],
    ids=["submit", "abandon", "cancel", "delete"],
)
def test_a_program_that_meets_the_lock_is_told_503_and_the_truth_and_nothing_is_changed(
    owner: Owner,
    simulator: Any,
    prepare: Callable[[Owner], str],
    send: Callable[[Owner, str], Any],
    status_after: int,
) -> None:
    client_id = prepare(owner)
    before = everything()
    with held_lock():
        refused = send(owner, client_id)
    assert refused.status_code == 503
    assert refused.json()["code"] in ("unavailable", "outcome_unknown")
    assert int(refused["Retry-After"]) > 0
    assert everything() == before  # so "nothing was saved" is true, and "not charged twice" as well
    assert violations() == []
    assert send(owner, client_id).status_code == status_after
    assert everything() != before  # the lock was all that stood in the way
    assert violations() == []


def test_an_order_repeated_while_the_lock_is_held_and_after_it_is_charged_once(
    owner: Owner, simulator: Any
) -> None:
    document, before = makers.order(), owner.balance_micros
    with held_lock():
        statuses = [makers.post(owner, document).status_code for _ in range(3)]
    assert statuses == [503, 503, 503]
    assert owner.balance_micros == before
    assert [makers.post(owner, document).status_code for _ in range(3)] == [201, 200, 200]
    assert before - owner.balance_micros == makers.PRICE_MICROS


@pytest.mark.parametrize("is_noted", [True, False], ids=["token used before", "token's first use"])
def test_reading_does_not_need_the_lock(owner: Owner, simulator: Any, is_noted: bool) -> None:
    client_id = makers.submit(owner)
    if not is_noted:
        ApiToken.objects.update(last_used_at=None)
    with held_lock():
        assert makers.get(owner, client_id).status_code == 200
        assert owner.api.get("/api/account").status_code == 200
        assert Client().get("/readyz").status_code == 200
        assert Client().get("/metrics").status_code == 200


@pytest.mark.parametrize("action", ["cancel", "delete"])
def test_a_person_s_page_that_meets_the_lock_answers_503_and_changes_nothing(
    owner: Owner, simulator: Any, action: str
) -> None:
    client_id = waiting(owner) if action == "cancel" else completed(owner)
    person = Client(raise_request_exception=False)
    person.force_login(owner.user)
    before = everything()
    with held_lock():
        refused = person.post(f"/videos/{client_id}/{action}", {"confirmed": "yes"})
    assert refused.status_code == 503
    assert everything() == before
    assert person.post(f"/videos/{client_id}/{action}", {"confirmed": "yes"}).status_code == 302
    assert everything() != before
    assert violations() == []
