"""An unsafe production is refused by name; a safe one is not."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import connection

from config import checks
from core import invariants
from tests.conftest import IS_POSTGRESQL

GOOD_SECRET = "9" * 64


@pytest.fixture(autouse=True)
def a_safe_production(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DEBUG = False
    settings.SECRET_KEY = GOOD_SECRET
    settings.ALLOWED_HOSTS = ["oncereel.example"]
    settings.PUBLIC_BASE_URL = "https://oncereel.example"
    settings.FAL_KEY = "key:secret"
    settings.FAL_JWKS_URL = "https://keys.example/jwks.json"
    monkeypatch.delenv("CRASH_AT", raising=False)


def found(*, deploy: bool = True, databases: list[str] | None = None) -> list[str]:
    messages = run_checks(include_deployment_checks=deploy, databases=databases)
    return [message.id for message in messages if message.id.startswith("oncereel.")]


def test_a_safe_production_has_nothing_to_say() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("SECRET_KEY", "short", "oncereel.E001"),
        ("SECRET_KEY", "django-insecure-" + "x" * 60, "oncereel.E001"),
        ("DEBUG", True, "oncereel.E002"),
        ("LEASE_SECONDS", 35, "oncereel.E004"),
        ("SUBMIT_READ_SECONDS", 50.0, "oncereel.E004"),
        ("UNKNOWN_GIVE_UP_AFTER", 1800, "oncereel.W001"),
        ("PRICE_MARKUP", "a third", "oncereel.E005"),
        ("PRICE_MARKUP", "NaN", "oncereel.E005"),
        ("PRICE_MARKUP", "0", "oncereel.E005"),
        ("PRICE_MARKUP", "0.99", "oncereel.W002"),
    ],
)
def test_an_unsafe_setting_is_found_by_every_command(
    settings: Any, name: str, value: Any, expected: str
) -> None:
    setattr(settings, name, value)
    assert found(deploy=False) == [expected]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("FAL_KEY", "", "oncereel.E006"),
        ("FAL_JWKS_URL", "", "oncereel.E007"),
        ("PUBLIC_BASE_URL", "http://oncereel.example", "oncereel.W003"),
        ("QUARANTINE", True, "oncereel.I001"),
    ],
)
def test_what_a_deployment_must_have_is_asked_of_a_deployment(
    settings: Any, name: str, value: Any, expected: str
) -> None:
    setattr(settings, name, value)
    assert found() == [expected]
    assert found(deploy=False) == []


def test_the_lease_may_just_outlast_a_submit(settings: Any) -> None:
    settings.LEASE_SECONDS = 36
    assert found() == []


def test_debug_on_loopback_is_allowed_with_any_secret(settings: Any) -> None:
    settings.DEBUG = True
    settings.SECRET_KEY = "short"
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
    assert found(deploy=False) == []


def test_crash_points_are_refused_in_production_only(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRASH_AT", "after_commit:1")
    assert found() == ["oncereel.E003"]
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["localhost"]
    assert found(deploy=False) == []


# --- what only the database can tell --------------------------------------------------------------


def database_messages() -> list[Any]:
    return [item for item in checks.check_database(databases=["default"]) if item.id != "oncereel.W004"]


@pytest.mark.django_db
def test_the_test_database_is_durable_and_has_its_triggers() -> None:
    assert database_messages() == []


def test_the_database_is_asked_only_when_it_is_named() -> None:
    assert checks.check_database(databases=None) == []
    assert checks.check_database(databases=[]) == []


@pytest.mark.django_db(transaction=True)
def test_commits_that_may_be_lost_are_refused() -> None:
    off, on, name = (
        ("SET synchronous_commit = off", "RESET synchronous_commit", "synchronous_commit is off")
        if IS_POSTGRESQL
        else ("PRAGMA synchronous = 1", "PRAGMA synchronous = 2", "PRAGMA synchronous is 1")
    )
    with connection.cursor() as cursor:
        cursor.execute(off)
        try:
            (message,) = database_messages()
        finally:
            cursor.execute(on)
    assert message.id == "oncereel.E008"
    assert message.msg.startswith(f"{name}: ")


@pytest.mark.django_db(transaction=True)
def test_a_session_that_skips_triggers_is_refused() -> None:
    off, on, name = (
        (
            "SET session_replication_role = replica",
            "RESET session_replication_role",
            "session_replication_role",
        )
        if IS_POSTGRESQL
        else ("PRAGMA recursive_triggers = 0", "PRAGMA recursive_triggers = 1", "PRAGMA recursive_triggers")
    )
    with connection.cursor() as cursor:
        cursor.execute(off)
        try:
            (message,) = database_messages()
        finally:
            cursor.execute(on)
    assert message.id == "oncereel.E008"
    assert message.msg.startswith(f"{name} is ")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_altered", [False, True])
def test_a_trigger_that_is_gone_or_altered_is_refused(is_altered: bool) -> None:
    name = "billing_account_opens_empty"
    guard = next(guard for guard in invariants.declared() if guard.name == name)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name} ON {guard.table}" if IS_POSTGRESQL else f"DROP TRIGGER {name}")
        if is_altered:
            weaker = invariants.Guard(name=name, table=guard.table, event=guard.event, when="1 = 0")
            for statement in weaker.statements(connection.vendor):
                cursor.execute(statement)
    try:
        (message,) = database_messages()
    finally:
        invariants.install()
    assert message.id == "oncereel.E009"
    assert message.msg == f"1 triggers are missing or altered: {name}."
    assert database_messages() == []


@pytest.mark.django_db(transaction=True)
def test_migrating_brings_a_missing_trigger_back_instead_of_refusing_to_run() -> None:
    with connection.cursor() as cursor:
        on = " ON billing_account" if IS_POSTGRESQL else ""
        cursor.execute(f"DROP TRIGGER billing_account_opens_empty{on}")
    call_command("migrate", verbosity=0, skip_checks=False)
    assert invariants.missing() == []


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_role_that_owns_the_tables_is_warned_of_and_another_is_not() -> None:
    assert [item.id for item in checks.check_database(databases=["default"])] == ["oncereel.W004"]
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE pg_read_all_data")
        try:
            assert checks.check_database(databases=["default"]) == []
        finally:
            cursor.execute("RESET ROLE")
