"""The check that follows every case must be able to fail."""

from typing import Any

import pytest
from django.db import connection

from core.invariants import lifted_for_tests
from tests import makers
from tests.invariants_check import jobs_run_twice, violations
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def execute(statement: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def test_money_that_no_transfer_explains_is_found(owner: Owner, simulator: Any) -> None:
    assert violations() == []
    for change in (1, -1):
        execute("UPDATE billing_account SET balance_micros = balance_micros + %s", change)
        found = violations()
        assert bool(found) == (change == 1), found
        assert any("balance" in line for line in found) == (change == 1)


def test_a_lost_resolution_is_found(owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt='a cat [sim: fail="no"]')
    makers.work()
    task_id = makers.task_of(owner, client_id).pk
    if connection.vendor == "sqlite":
        task_id = task_id.hex
    execute("CREATE TEMPORARY TABLE kept AS SELECT * FROM billing_resolution WHERE charge_id = %s", task_id)
    try:
        with lifted_for_tests():
            execute("DELETE FROM billing_resolution WHERE charge_id = %s", task_id)
        assert violations() != []
    finally:
        execute("INSERT INTO billing_resolution SELECT * FROM kept")
        execute("DROP TABLE kept")
    assert violations() == []


def test_a_second_job_of_one_task_is_found_in_the_provider_s_journal(owner: Owner, simulator: Any) -> None:
    makers.submit(owner)
    makers.work_once()
    (job,) = simulator.jobs()
    assert jobs_run_twice(simulator) == []
    again = simulator.request(
        "POST",
        f"/{job['endpoint']}?fal_webhook={job['webhook_url']}",
        body=job["input"],
        key="test-key:test-secret",
    )
    assert again.status == 200
    assert len(jobs_run_twice(simulator)) == 1
    simulator.reset()  # made on purpose
