"""One task that breaks whatever touches it keeps no other waiting; nor does a long queue keep a deploy."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from core import db
from tests import makers
from tests.cases.evidence import state_of
from tests.concurrency.submissions import begin_sending, send
from tests.makers import PRICE_MICROS, Owner
from videos import tasks
from videos.catalogue import get_model
from videos.engine import binding, dispatch, polling, results, unknowns
from videos.engine.pauses import LONGEST_TOLD_SECONDS
from videos.models import AttemptPayload
from videos.providers.base import Accepted, ReadTrouble
from videos.providers.fal import FalQueue
from videos.providers.registry import get_provider
from videos.states import EvidenceKind

pytestmark = pytest.mark.django_db


class Broken(Exception):
    """Stands for a defect of ours."""


def break_for(monkeypatch: pytest.MonkeyPatch, owner: Owner, client_id: str, method: str) -> None:
    """Let an adapter's method raise for the job of one task."""
    (attempt,) = makers.attempts_of(owner, client_id)
    sound = getattr(FalQueue, method)

    def breaking(self: FalQueue, job: Any) -> Any:
        if job.upstream_id == attempt.upstream_id:
            raise Broken
        return sound(self, job)

    monkeypatch.setattr(FalQueue, method, breaking)


def two_running(owner: Owner) -> tuple[str, str]:
    both = makers.submit(owner, prompt="a cat [sim: webhook_none]"), makers.submit(owner)
    dispatch.dispatch_due()
    makers.make_due()
    return both


def test_a_job_that_cannot_be_read_keeps_no_other_job_waiting(
    owner: Owner, simulator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = two_running(owner)
    break_for(monkeypatch, owner, bad, "status")
    assert polling.poll_due() == 2
    assert makers.task_of(owner, good).phase == "storing"
    task = makers.task_of(owner, bad)
    assert (task.state, task.tries, task.lease_token) == ("processing", 1, None)


def test_a_result_that_breaks_its_download_keeps_no_other_result_waiting(
    owner: Owner, simulator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = two_running(owner)
    polling.poll_due()
    break_for(monkeypatch, owner, bad, "result")
    makers.make_due()
    with pytest.raises(Broken):
        results.store_due()
    assert state_of(owner, good) == ("completed", "settled", "completed")
    assert state_of(owner, bad)[:2] == ("processing", "charged")


def test_trouble_with_a_call_back_keeps_no_unknown_task_waiting(
    owner: Owner, simulator: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: drop_after_accept webhook_none]")
    dispatch.dispatch_due()
    makers.make_due()

    def breaking() -> int:
        raise Broken

    monkeypatch.setattr(unknowns, "confirm_calls_due", breaking)
    with pytest.raises(Broken):
        unknowns.check_unknown_due()
    assert makers.task_of(owner, client_id).state == "processing"


def test_one_message_sends_one_round_so_that_a_worker_told_to_stop_claims_nothing_new(
    owner: Owner, simulator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "SENT_AT_ONCE", 2)
    for _ in range(3):
        makers.submit(owner)
    tasks.dispatch_due()
    assert simulator.posts() == 2
    tasks.dispatch_due()
    assert simulator.posts() == 3


def test_a_provider_that_tells_us_to_read_again_tomorrow_is_read_in_a_quarter_of_an_hour(
    owner: Owner, simulator: Any
) -> None:
    client_id, _ = two_running(owner)
    now = timezone.now()
    task = makers.task_of(owner, client_id)
    reading = ReadTrouble(reason="status_503", retry_after_seconds=86_400)
    polling._set_going_on(task, reading, get_provider("fal"), now)
    assert task.next_check_at == now + timedelta(seconds=LONGEST_TOLD_SECONDS)
    assert LONGEST_TOLD_SECONDS == 900


def test_usage_is_measured_in_the_unit_that_the_charge_froze(
    owner: Owner, simulator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogue changes from seconds to videos while one is made: one video is not one second."""
    client_id = makers.submit(owner, prompt="a cat [sim: units=1 webhook_none]")
    spec = get_model(makers.MODEL)
    assert spec is not None
    changed = replace(spec, price_unit="video", usage_unit="video")
    monkeypatch.setattr(results, "get_model", lambda model: changed)
    makers.work()
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS


def test_an_id_too_long_to_be_kept_is_unclear_and_its_answer_is_kept(owner: Owner, simulator: Any) -> None:
    """On PostgreSQL the column would refuse it, and with it the record of the whole answer."""
    client_id = makers.submit(owner, prompt="a cat [sim: lookup=never webhook_none]")
    sending = begin_sending(client_id)
    _, response = send(sending)
    body = b'{"request_id": "' + b"x" * 129 + b'"}'
    long = replace(response, body=body)
    dispatch.record_answer(sending=sending, answer=sending.provider.read_submit(long), response=long)
    (attempt,) = makers.attempts_of(owner, client_id)
    assert (attempt.outcome, attempt.reason, attempt.http_status) == ("unclear", "no_id", 200)
    assert AttemptPayload.objects.get(attempt=attempt).response_body == body.decode()
    longest = replace(response, body=body.replace(b"xx", b"x", 1))
    answer = sending.provider.read_submit(longest)
    assert isinstance(answer, Accepted)
    dispatch.record_answer(sending=sending, answer=answer, response=longest)
    assert len(str(makers.attempts_of(owner, client_id)[0].upstream_id)) == 128


def test_the_answer_to_a_submit_is_kept_when_a_call_back_had_bound_its_job_before(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: webhook_none]")
    sending = begin_sending(client_id)
    answer, response = send(sending)
    assert isinstance(answer, Accepted)
    job = binding.UpstreamJob(
        upstream_id=answer.upstream_id, source="fal", actor="policy", kind=EvidenceKind.WEBHOOK
    )
    task = makers.task_of(owner, client_id)
    bound = db.transaction(binding.bind)
    outcome = bound(task=task, attempt=sending.attempt, job=job, now=timezone.now())
    assert outcome == "bound"
    dispatch.record_answer(sending=sending, answer=answer, response=response)
    (attempt,) = makers.attempts_of(owner, client_id)
    assert (attempt.outcome, attempt.http_status) == ("accepted", 200)
    assert len(attempt.response_sha256) == 64
    makers.work()
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
