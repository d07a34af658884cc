"""The broker is a doorbell and the database is the truth: without it nothing is slow and nothing is lost."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.conf import settings as django_settings

from billing.models import Charge
from core import nudge
from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.processes import environment_of_this_test
from tests.concurrency.racing import race
from tests.simulator_process import SimulatorProcess, free_port
from videos.models import Attempt, VideoTask

pytestmark = [pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).resolve().parents[2]
PRICE = makers.PRICE_MICROS
MOST_SECONDS = 0.5  # what a broker in trouble may cost a request


class SilentListener:
    """Takes connections and never says a word, as a hung Redis does."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return  # the test is over
            self.taken.append(connection)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()
        for connection in self.taken:
            connection.close()


@contextmanager
def broker_at(port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[nudge.Doorbell]:
    """The product's own doorbell with its settings, led to a broker on this port."""
    app = Celery("bell")
    app.conf.update(django_settings.CELERY, broker_url=f"redis://127.0.0.1:{port}/0")
    bell = nudge.Doorbell()
    monkeypatch.setattr(nudge, "current_app", app)
    monkeypatch.setattr(nudge, "doorbell", bell)
    yield bell
    monkeypatch.undo()


class Listening:
    """Stands where the Celery app is and notes the bells."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.options: list[dict[str, Any]] = []

    def send_task(self, name: str, *, kwargs: dict[str, Any], **options: Any) -> None:
        self.heard.append((name, kwargs))
        self.options.append(options)


def test_bells_of_one_moment_are_one_and_a_later_commit_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, bell = Listening(), nudge.Doorbell()
    monkeypatch.setattr(nudge, "current_app", broker)
    monkeypatch.setattr(nudge, "GATHER_SECONDS", 0.2)
    bell.ring("videos.tasks.dispatch_due", {})
    assert bell.drain(10)  # after a quiet moment at once
    for _ in range(100):
        bell.ring("videos.tasks.dispatch_due", {})
    bell.ring("videos.tasks.poll_due", {"number": 1})
    bell.ring("videos.tasks.poll_due", {"number": 2})
    assert bell.drain(10)
    dispatch = ("videos.tasks.dispatch_due", {})
    numbered = [("videos.tasks.poll_due", {"number": number}) for number in (1, 2)]
    assert broker.heard == [dispatch, dispatch, *numbered]
    bell.ring("videos.tasks.dispatch_due", {})
    assert bell.drain(10)
    assert len(broker.heard) == 5


def test_a_bell_never_expires_as_the_schedule_would_starve_behind_those_that_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, bell = Listening(), nudge.Doorbell()
    monkeypatch.setattr(nudge, "current_app", broker)
    bell.ring("videos.tasks.dispatch_due", {})
    assert bell.drain(10)
    assert [options.get("expires") for options in broker.options] == [None]


def post_timed(owner: makers.Owner, number: int) -> tuple[list[str], float]:
    """Ids that were accepted, and how long the slowest took in seconds."""
    ids, slowest = [], 0.0
    for _ in range(number):
        began = time.monotonic()
        answer = makers.post(owner, makers.order())
        slowest = max(slowest, time.monotonic() - began)
        assert answer.status_code == 201
        ids.append(answer.json()["id"])
    return ids, slowest


def assert_all_run_without_a_bell(owner: makers.Owner, simulator: SimulatorProcess, ids: list[str]) -> None:
    makers.work()
    assert {makers.task_of(owner, client_id).state for client_id in ids} == {"completed"}
    assert simulator.count() == len(ids)
    assert owner.balance_micros == 100_000_000 - len(ids) * PRICE
    assert_books_balance()


def test_a_hung_broker_costs_a_request_next_to_nothing_and_the_schedule_runs_it(
    simulator: SimulatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = makers.make_owner()
    usual_ids, usual = post_timed(owner, 4)
    assert nudge.doorbell.drain(10)  # its bells are not to be rung at the broker below
    listener = SilentListener()
    with broker_at(listener.port, monkeypatch) as bell:
        first, slowest = post_timed(owner, 1)
        hangs = not bell.drain(0.05)
        rest, slowest_of_rest = post_timed(owner, 7)
        listener.close()
        assert bell.drain(10)
    assert hangs and listener.taken  # the bell did go to the hung broker, and was still waiting there
    assert max(slowest, slowest_of_rest) < usual + MOST_SECONDS
    assert_all_run_without_a_bell(owner, simulator, usual_ids + first + rest)


def test_without_a_broker_a_request_is_as_quick_and_the_bell_is_skipped_for_a_while(
    simulator: SimulatorProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    owner = makers.make_owner()
    usual_ids, usual = post_timed(owner, 4)
    assert nudge.doorbell.drain(10)  # its bells are not to be rung at the broker below
    with broker_at(free_port(), monkeypatch) as bell:
        first, slowest = post_timed(owner, 1)
        assert bell.drain(10)
        silent = [record for record in caplog.records if record.getMessage() == "doorbell_silent"]
        rest, slowest_of_rest = post_timed(owner, 7)
        assert bell.drain(0)  # nothing was put on the queue
    assert len(silent) == 1
    assert max(slowest, slowest_of_rest) < usual + MOST_SECONDS
    assert_all_run_without_a_bell(owner, simulator, usual_ids + first + rest)


def test_more_bells_than_can_wait_are_dropped_and_hold_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listener = SilentListener()
    with broker_at(listener.port, monkeypatch) as bell:
        began = time.monotonic()
        for _ in range(nudge.WAITING_BELLS * 2):
            bell.ring("videos.tasks.dispatch_due", {})
        took = time.monotonic() - began
        listener.close()
        assert bell.drain(10)
    assert took < 5


@contextmanager
def eager_worker() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.concurrency.eager_worker"],
        cwd=ROOT,
        env=environment_of_this_test(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.stdin.close()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.mark.timeout(300)  # a quarter of a minute on an idle machine
def test_five_hundred_submits_with_a_worker_that_is_always_faster_lose_none_c50(
    simulator: SimulatorProcess,
) -> None:
    owner = makers.make_owner(balance="100000")

    def post_part() -> list[int]:
        return [makers.post(owner, makers.order()).status_code for _ in range(125)]

    with eager_worker():
        answers: list[Any] = race(*[post_part] * 4, patience=200)
        assert [status for part in answers for status in part] == [201] * 500
        until = time.monotonic() + 60
        while VideoTask.objects.filter(state="submitting").exists() and time.monotonic() < until:
            time.sleep(0.05)
    assert VideoTask.objects.filter(state="processing").count() == 500
    assert Attempt.objects.filter(outcome="accepted").count() == Attempt.objects.count() == 500
    assert simulator.count() == simulator.posts() == 500
    assert Charge.objects.count() == 500
    assert owner.balance_micros == 100_000_000_000 - 500 * PRICE
    assert_books_balance()
