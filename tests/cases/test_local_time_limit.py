"""C13: a time limit of ours says nothing about the provider's job."""

from datetime import timedelta
from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import kinds_of, state_of, wait_for
from tests.makers import PRICE_MICROS, Owner
from videos.models import VideoTask

pytestmark = pytest.mark.django_db


def bill_of(simulator: Any) -> list[dict[str, Any]]:
    reply = simulator.request("GET", "/v1/models/billing-events", key="test-key:test-secret")
    assert reply.status == 200
    lines: list[dict[str, Any]] = reply.json["billing_events"]
    return lines


def test_a_job_that_runs_past_our_limit_is_shown_as_stuck_and_not_refunded_and_its_video_arrives(
    owner: Owner, simulator: Any, settings: Any
) -> None:
    settings.MAX_JOB_SECONDS = 600
    client_id = makers.submit(owner, prompt="a cat [sim: seconds=1.5 queue_seconds=0]")
    makers.work(2)
    assert state_of(owner, client_id) == ("processing", "charged", "processing")
    makers.age([client_id], accepted_at=timedelta(seconds=601), created_at=timedelta(0))
    makers.work(2)
    assert state_of(owner, client_id) == ("processing", "charged", "stuck")
    assert kinds_of(owner, client_id) == ["charge"]
    alerted_at = makers.task_of(owner, client_id).stuck_alerted_at
    assert alerted_at is not None
    makers.work(2)
    assert makers.task_of(owner, client_id).stuck_alerted_at == alerted_at  # one alert
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    (line,) = bill_of(simulator)
    (attempt,) = makers.attempts_of(owner, client_id)
    assert line["request_id"] == attempt.upstream_id
    assert line["cost_total"] == pytest.approx(3.2)
    assert attempt.usage_units == line["output_units"] == 8
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS


def test_our_reading_patience_ends_before_the_answer_comes_and_nothing_is_refunded_or_sent_again(
    owner: Owner, simulator: Any, settings: Any
) -> None:
    settings.SUBMIT_READ_SECONDS = 0.3
    client_id = makers.submit(owner, prompt="a cat [sim: delay=1 seconds=1 webhook_none]")
    makers.work(2)
    assert state_of(owner, client_id) == ("unknown", "charged", "unknown")
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]
    assert (simulator.count(), simulator.posts(), len(bill_of(simulator))) == (1, 1, 1)


def test_a_job_that_never_ends_stays_visible_and_paid_until_a_person_decides(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: queue_forever]")
    makers.work(2)
    makers.age([client_id], accepted_at=timedelta(days=3))
    makers.work(6)
    assert state_of(owner, client_id) == ("processing", "charged", "stuck")
    assert VideoTask.objects.get(client_id=client_id).next_check_at is not None
    assert kinds_of(owner, client_id) == ["charge"]
