"""GET /metrics: exact figures of a made situation, for a scraper on this machine or with the token."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from billing.models import Charge
from core import db
from files import operations as files
from tests import makers
from tests.architecture.test_docs import names, rows
from tests.makers import Owner
from tests.simulator_process import SimulatorProcess
from videos import tasks
from videos.engine import alarms, dispatch, sweeping
from videos.models import Attempt, OrphanJob, Sweep, VideoTask, WebhookCall

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ANYWHERE = "203.0.113.9"
QUERIES = 9  # one more, for the database's clock, where no test sets it
LABELS = ("work", "provider")
PROVIDERS = ("fal", "fal_blind")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """The scrape happens at an exact moment of the future, so that every age is exact."""
    now = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr(db, "now", lambda: now)
    return now


def scrape(**headers: str) -> dict[tuple[str, ...], float]:
    """(name, labels …) → value, of every line."""
    answer = Client().get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    assert answer["Cache-Control"] == "no-store"
    return {
        (sample.name, *(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def set_columns(owner: Owner, client_id: str, **columns: Any) -> None:
    VideoTask.objects.filter(pk=makers.task_of(owner, client_id).pk).update(**columns)


def test_an_empty_installation_names_every_kind_of_work_and_all_is_zero():
    read = scrape()
    assert set(read.values()) == {0.0}
    works = {key[1:] for key in read if key[0] == "oncereel_due"}
    of_tasks = {(work, name) for work in ("dispatch", "unknown", "poll", "store") for name in PROVIDERS}
    assert works == of_tasks | {("late", "fal"), ("late", "fal_blind"), ("call", "")}


def test_the_documentation_lists_every_gauge():
    alarms.raise_alarm(provider="fal", source="submit", reason="forbidden", now=NOW)  # one is shown only then
    documented = [gauge for cells in rows("Metrics") for gauge in names(cells[0])]
    assert sorted(documented) == sorted({key[0] for key in scrape()})
    assert len(documented) == 15


def test_due_tasks_are_counted_by_work_and_provider_and_a_lease_is_not_due(
    owner: Owner, simulator: SimulatorProcess, clock: datetime
):
    due, later, blind = (
        makers.submit(owner),
        makers.submit(owner),
        makers.submit(owner, model=makers.BLIND_MODEL),
    )
    set_columns(owner, due, next_check_at=clock - timedelta(seconds=90))
    set_columns(owner, later, next_check_at=clock + timedelta(seconds=1))
    set_columns(owner, blind, next_check_at=clock - timedelta(seconds=7))
    read = scrape()
    assert (
        read["oncereel_unfinished_tasks", "dispatch", "fal"],
        read["oncereel_due", "dispatch", "fal"],
    ) == (2, 1)
    assert read["oncereel_oldest_overdue_seconds", "dispatch", "fal"] == 90
    assert read["oncereel_due", "dispatch", "fal_blind"] == 1
    assert read["oncereel_oldest_overdue_seconds", "dispatch", "fal_blind"] == 7
    assert sum(value for key, value in read.items() if key[0] == "oncereel_due") == 2


def test_running_and_storing_tasks_wait_in_queues_of_their_own(
    owner: Owner, simulator: SimulatorProcess, clock: datetime
):
    running, storing = makers.submit(owner), makers.submit(owner)
    makers.make_due()
    dispatch.dispatch_due()
    set_columns(owner, running, next_check_at=clock - timedelta(seconds=3), phase=None)
    set_columns(owner, storing, next_check_at=clock - timedelta(seconds=4), phase="storing")
    read = scrape()
    assert {key[1:]: value for key, value in read.items() if key[0] == "oncereel_due" and value} == {
        ("poll", "fal"): 1,
        ("store", "fal"): 1,
    }
    assert read["oncereel_oldest_overdue_seconds", "poll", "fal"] == 3
    assert read["oncereel_oldest_overdue_seconds", "store", "fal"] == 4


def test_the_oldest_unresolved_charge_is_that_of_the_oldest_unfinished_task(
    owner: Owner, simulator: SimulatorProcess, clock: datetime
):
    ended = makers.submit(owner)
    makers.work()
    assert makers.task_of(owner, ended).state == "completed"
    assert scrape()["oncereel_oldest_unresolved_charge_seconds",] == 0
    first = makers.submit(owner)
    makers.submit(owner)
    charge = Charge.objects.get(claim=makers.view(owner, first).claim)
    assert (
        scrape()["oncereel_oldest_unresolved_charge_seconds",] == (clock - charge.created_at).total_seconds()
    )


def test_unknown_review_and_stuck_tasks_are_counted_as_on_the_desk(
    owner: Owner, simulator: SimulatorProcess, settings: Any, clock: datetime
):
    simulator.add_fault({"drop_after_accept": True}, times=2)
    simulator.add_fault({"status": "running"}, on="status")
    sent = []
    for _ in range(3):  # one after the other, so that the first two are those whose answer is lost
        sent.append(makers.submit(owner))
        dispatch.dispatch_due()
    fresh, old, stuck = sent
    assert [makers.task_of(owner, client_id).state for client_id in (fresh, old, stuck)] == [
        "unknown",
        "unknown",
        "processing",
    ]
    review = settings.UNKNOWN_REVIEW_AFTER
    set_columns(owner, fresh, first_unclear_at=clock - timedelta(seconds=review))
    set_columns(owner, old, first_unclear_at=clock - timedelta(seconds=review + 60))
    set_columns(owner, stuck, stuck_alerted_at=clock)
    read = scrape()
    figures = ("unknown_tasks", "oldest_unknown_seconds", "review_tasks", "stuck_tasks")
    assert [read[f"oncereel_{name}",] for name in figures] == [2, review + 60, 1, 1]


def test_an_alarm_is_shown_with_its_provider_and_its_beginning():
    alarms.raise_alarm(provider="fal", source="submit", reason="forbidden", now=NOW)
    read = scrape()
    assert read["oncereel_provider_alarm", "fal"] == 1
    assert read["oncereel_provider_alarm", "fal_blind"] == 0
    since = "oncereel_provider_alarm_since_timestamp_seconds"
    assert {key: value for key, value in read.items() if key[0] == since} == {(since, "fal"): NOW.timestamp()}
    alarms.clear_alarm(provider="fal", source="submit", now=NOW + timedelta(seconds=5))
    assert (read := scrape())["oncereel_provider_alarm", "fal"] == 0
    assert (since, "fal") not in read


def test_dead_objects_count_until_their_bytes_are_gone(clock: datetime):
    for seconds in (30, 40):
        key = files.reserve_key(folder="results", suffix=".mp4", now=NOW)
        files.discard_key(key=key, now=clock - timedelta(seconds=seconds))
    read = scrape()
    assert (read["oncereel_dead_objects",], read["oncereel_oldest_dead_object_seconds",]) == (2, 40)
    files.remove_dead(now=clock)
    read = scrape()
    assert (read["oncereel_dead_objects",], read["oncereel_oldest_dead_object_seconds",]) == (0, 0)


def test_what_housekeeping_owes_is_counted(owner: Owner, simulator: SimulatorProcess, clock: datetime):
    client_id = makers.submit(owner)
    makers.work()
    task = makers.task_of(owner, client_id)
    Attempt.objects.filter(task_id=task.pk).update(late_check_at=clock - timedelta(seconds=11))
    job = {"upstream_id": "job-1", "task_id": task.pk}
    WebhookCall.objects.create(**job, word="OK", received_at=clock, check_at=clock - timedelta(seconds=12))
    OrphanJob.objects.create(**job, provider_account="fal:other", source="lookup", created_at=clock)
    VideoTask.objects.filter(pk=task.pk).update(delete_requested_at=clock)
    read = scrape()
    assert (read["oncereel_due", "late", "fal"], read["oncereel_due", "call", ""]) == (1, 1)
    assert read["oncereel_oldest_overdue_seconds", "late", "fal"] == 11
    assert read["oncereel_oldest_overdue_seconds", "call", ""] == 12
    assert (read["oncereel_tasks_to_bury",], read["oncereel_orphan_jobs",]) == (1, 1)


# --- what a scrape costs ------------------------------------------------------------------------------


def test_a_scrape_takes_the_same_few_queries_however_many_tasks_there_are(
    owner: Owner, simulator: SimulatorProcess, clock: datetime, django_assert_num_queries: Any
):
    with django_assert_num_queries(QUERIES):
        scrape()
    ended, waiting = [makers.submit(owner) for _ in range(3)], []
    makers.work()
    assert {makers.task_of(owner, client_id).state for client_id in ended} == {"completed"}
    waiting += [makers.submit(owner) for _ in range(3)]
    with django_assert_num_queries(QUERIES):
        read = scrape()
    assert read["oncereel_unfinished_tasks", "dispatch", "fal"] == len(waiting)


@pytest.mark.postgresql
def test_no_query_reads_a_whole_table_of_what_has_ended(clock: datetime):
    """PostgreSQL reads a table of a few rows as a whole; told not to, it shows which index it can use."""
    with CaptureQueriesContext(connection) as captured:
        scrape()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plans = []
        for query in captured:
            cursor.execute(f"EXPLAIN {query['sql']}")
            plans.append("\n".join(line for (line,) in cursor.fetchall()))
    few = ("providerstatus", "orphanjob", "videos_sweep")
    of_ended = [plan for plan in plans if not any(table in plan for table in few)]
    assert len(of_ended) == QUERIES - 3
    indexes = [set(re.findall(r"using (\w+)|Index Scan on (\w+)", plan)) for plan in of_ended]
    assert [{name for pair in found for name in pair if name} for found in indexes] == [
        {"videos_task_due"},
        {"videos_attempt_late"},
        {"videos_call_due"},
        {"videos_task_due"},
        {"files_object_to_remove"},
        {"videos_task_to_bury"},
    ]
    assert not [plan for plan in of_ended if "Seq Scan" in plan]


# --- who may read -------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_a_scraper_on_this_machine_needs_no_token(address: str):
    assert Client(REMOTE_ADDR=address).get("/metrics").status_code == 200


@pytest.mark.parametrize("address", [ANYWHERE, "10.0.0.1", "::2", "::ffff:203.0.113.9", "", "localhost"])
def test_for_everybody_else_nothing_is_here(address: str):
    answer = Client(REMOTE_ADDR=address).get("/metrics")
    assert answer.status_code == 404
    assert b"oncereel_" not in answer.content


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "Via", "X-Real-IP"])
def test_what_came_through_a_proxy_on_this_machine_is_not_of_this_machine(header: str):
    assert Client(REMOTE_ADDR="127.0.0.1", headers={header: "127.0.0.1"}).get("/metrics").status_code == 404


@pytest.mark.parametrize("scheme", ["Bearer", "Token", "bearer"])
def test_the_token_opens_it_from_anywhere(settings: Any, scheme: str):
    settings.METRICS_TOKEN = "the-scraper's"
    client = Client(REMOTE_ADDR=ANYWHERE, headers={"authorization": f"{scheme} the-scraper's"})
    assert client.get("/metrics").status_code == 200


@pytest.mark.parametrize(
    ("expected", "header"),
    [
        ("the-scraper's", "Bearer another"),
        ("the-scraper's", "Basic the-scraper's"),
        ("the-scraper's", "the-scraper's"),
        ("the-scraper's", "Bearer "),
        ("", "Bearer "),
        ("", "Bearer"),
        ("", "Token the-scraper's"),
    ],
)
def test_another_token_or_none_opens_nothing(settings: Any, expected: str, header: str):
    settings.METRICS_TOKEN = expected
    client = Client(REMOTE_ADDR=ANYWHERE, headers={"authorization": header})
    assert client.get("/metrics").status_code == 404


def test_a_token_of_the_api_opens_nothing(settings: Any, owner: Owner):
    settings.METRICS_TOKEN = "the-scraper's"
    client = Client(REMOTE_ADDR=ANYWHERE, headers={"authorization": f"Token {owner.key}"})
    assert client.get("/metrics").status_code == 404


def test_it_is_only_read():
    assert Client().post("/metrics").status_code == 405


def test_a_scrape_without_https_is_not_sent_elsewhere(settings: Any):
    settings.SECURE_SSL_REDIRECT = True
    assert Client().get("/metrics").status_code == 200


def test_the_sweepers_lag_is_the_time_since_a_whole_run_ended(clock: datetime):
    assert scrape()["oncereel_sweeper_lag_seconds",] == 0
    for seconds in (900, 42):
        sweeping.note_sweep(now=clock - timedelta(seconds=seconds))
        assert scrape()["oncereel_sweeper_lag_seconds",] == seconds
    tasks.sweep()
    assert scrape()["oncereel_sweeper_lag_seconds",] == 0
    assert Sweep.objects.count() == 1
