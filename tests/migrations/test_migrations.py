"""Migrations say what the models say, and apply from nothing."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from core import invariants

OUR_APPS = sorted(
    config.label
    for config in apps.get_app_configs()
    if config.models_module is not None and not config.name.startswith(("django.", "allauth", "drf_"))
)


@pytest.mark.django_db
def test_no_model_has_changed_without_a_migration(capsys: pytest.CaptureFixture[str]):
    call_command("makemigrations", check=True, dry_run=True, verbosity=1)
    assert capsys.readouterr().out.strip() == "No changes detected"


@pytest.mark.django_db
def test_every_migration_is_applied_in_a_database_made_from_nothing(capsys: pytest.CaptureFixture[str]):
    """The test database is one: it was made by running them all."""
    call_command("migrate", check_unapplied=True, verbosity=1)
    loader = MigrationLoader(connection)
    assert set(loader.disk_migrations) <= set(loader.applied_migrations)
    assert {"accounts", "billing", "files", "tombstones", "videos"} <= set(OUR_APPS)


@pytest.mark.django_db
def test_no_app_has_two_last_migrations():
    assert MigrationLoader(None).detect_conflicts() == {}


@pytest.mark.django_db(transaction=True)
def test_everything_can_be_taken_back_and_applied_again():
    """From zero, on the database under test: each of our apps back to nothing, then forward."""
    tables = set(connection.introspection.table_names())
    ours = {model._meta.db_table for app in OUR_APPS for model in apps.get_app_config(app).get_models()}
    try:
        call_command("migrate", "tombstones", "zero", verbosity=0)
        gone = tables - set(connection.introspection.table_names())
        assert {"tombstones_claim", "billing_transfer", "videos_videotask"} <= gone <= ours
    finally:
        call_command("migrate", verbosity=0)
    assert set(connection.introspection.table_names()) == tables
    assert invariants.missing() == []
