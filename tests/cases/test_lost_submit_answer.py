"""C01: the answer to a submission is lost after (or before) the provider took the job."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from core.http import AnswerLost
from tests import makers
from tests.cases.evidence import kinds_of, state_of, wait_for
from tests.invariants_check import jobs_run_twice
from tests.makers import BLIND_MODEL, PRICE_MICROS, Owner
from videos import desk
from videos.engine import dispatch, verdicts
from videos.models import Evidence, OrphanJob, WebhookCall
from videos.states import Outcome

pytestmark = pytest.mark.django_db
AFTER_PRICE = 100_000_000 - PRICE_MICROS
# Ways in which an answer is lost although the job was taken.
LOST = [
    "drop_after_accept",
    "drop_after_accept=close",
    "drop_after_accept=half",
    "hang=5",
    "answer_after_accept=500",
    "answer_after_accept=502",
    "answer_after_accept=504",
    "answer_after_accept=408",
    "answer_after_accept=409",
    "answer_after_accept=425",
    "answer_after_accept=404",
    "shape=no_id",
    "shape=array",
    "body=html",
    "body=empty",
    "body=broken",
]


def assert_completed_once(owner: Owner, client_id: str, simulator: Any) -> None:
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]
    assert owner.balance_micros == AFTER_PRICE
    assert (simulator.count(), simulator.posts()) == (1, 1)
    assert OrphanJob.objects.count() == 0


def evidence_kinds(owner: Owner, client_id: str) -> list[str]:
    task_id = makers.task_of(owner, client_id).pk
    return list(
        Evidence.objects.filter(task_id=task_id).order_by("created_at").values_list("kind", flat=True)
    )


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_answer_was_lost_is_found_by_its_call_back(
    owner: Owner, simulator: Any, reached_by_webhooks: str
) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: drop_after_accept lookup=never]")
    makers.work_once()
    assert state_of(owner, client_id)[:2] in [("unknown", "charged"), ("processing", "charged")]
    wait_for(lambda: WebhookCall.objects.exists())
    makers.work()
    assert_completed_once(owner, client_id, simulator)
    assert evidence_kinds(owner, client_id) == ["webhook"]


@pytest.mark.django_db(transaction=True)
def test_call_back_and_list_together_bind_one_job_once(
    owner: Owner, simulator: Any, reached_by_webhooks: str
) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: drop_after_accept webhook_copies=3]")
    makers.work_once()
    wait_for(lambda: WebhookCall.objects.filter(calls=3).exists())
    makers.work()
    assert_completed_once(owner, client_id, simulator)


@pytest.mark.parametrize("fault", LOST)
def test_a_job_whose_answer_was_lost_is_found_in_the_list(
    owner: Owner, simulator: Any, settings: Any, fault: str
) -> None:
    settings.SUBMIT_READ_SECONDS = 0.5
    prompt = f"a cat [sim: {fault} webhook_none lookup_lag=0.4]"
    client_id = makers.submit(owner, prompt=prompt)
    dispatch.dispatch_due()
    assert state_of(owner, client_id) == ("unknown", "charged", "unknown")
    assert [attempt.outcome for attempt in makers.attempts_of(owner, client_id)] == ["unclear"]
    assert kinds_of(owner, client_id) == ["charge"]
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    assert_completed_once(owner, client_id, simulator)
    assert evidence_kinds(owner, client_id) == ["lookup"]


def test_two_lost_jobs_with_the_same_prompt_are_each_found_by_their_own_seed(
    owner: Owner, simulator: Any
) -> None:
    prompt = "a cat [sim: drop_after_accept webhook_none]"
    first, second = makers.submit(owner, prompt=prompt), makers.submit(owner, prompt=prompt)
    makers.work()
    bound = {}
    for client_id in (first, second):
        assert state_of(owner, client_id)[0] == "completed"
        (attempt,) = makers.attempts_of(owner, client_id)
        bound[attempt.upstream_id] = attempt.marker
    sent = {job["request_id"]: str(job["input"]["seed"]) for job in simulator.jobs()}
    assert bound == sent and len(sent) == 2


def test_two_lost_jobs_that_no_marker_tells_apart_wait_for_a_person_instead_of_being_guessed(
    owner: Owner, simulator: Any
) -> None:
    prompt = "a cat [sim: drop_after_accept webhook_none]"
    both = [makers.submit(owner, prompt=prompt, seed=7) for _ in range(2)]
    makers.work()
    for client_id in both:
        assert state_of(owner, client_id) == ("unknown", "charged", "unknown")
    assert (simulator.count(), simulator.posts()) == (2, 2)


def test_where_nothing_can_be_asked_a_lost_answer_stays_unknown_and_is_never_sent_again(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, model=BLIND_MODEL, prompt="a cat [sim: drop_after_accept]")
    makers.work(8)
    assert state_of(owner, client_id) == ("unknown", "charged", "unknown")
    assert kinds_of(owner, client_id) == ["charge"]
    assert (simulator.count(), simulator.posts()) == (1, 1)
    makers.age([client_id], first_unclear_at=timedelta(hours=1))
    assert state_of(owner, client_id) == ("unknown", "charged", "unknown_review")


def test_where_nothing_can_be_asked_a_person_who_found_the_job_brings_the_video(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, model=BLIND_MODEL, prompt="a cat [sim: drop_after_accept]")
    makers.work()
    desk.adopt_upstream_id(
        task_id=makers.task_of(owner, client_id).pk,
        upstream_id=simulator.jobs()[0]["request_id"],
        actor="sam",
        reason="found in the provider's dashboard",
        now=timezone.now(),
    )
    makers.work()
    assert_completed_once(owner, client_id, simulator)
    assert evidence_kinds(owner, client_id) == ["person"]


@pytest.mark.parametrize("model", [makers.MODEL, BLIND_MODEL])
def test_after_a_day_without_a_trace_the_money_comes_back_once_with_the_limit_as_evidence(
    owner: Owner, simulator: Any, model: str
) -> None:
    prompt = "a cat [sim: drop_after_accept webhook_none lookup=never]"
    client_id = makers.submit(owner, model=model, prompt=prompt)
    makers.work()
    makers.age([client_id], first_unclear_at=timedelta(hours=23, minutes=59))
    makers.work()
    assert state_of(owner, client_id)[:2] == ("unknown", "charged")
    makers.age([client_id], first_unclear_at=timedelta(minutes=1))
    makers.work()
    assert state_of(owner, client_id) == ("failed", "refunded", "time_limit")
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    assert evidence_kinds(owner, client_id) == ["time_limit"]
    assert owner.balance_micros == 100_000_000
    assert (simulator.count(), simulator.posts()) == (1, 1)


@pytest.mark.parametrize(
    "fault", ["drop_before_accept", "drop_before_accept=reset", "refuse=500", "refuse=502"]
)
def test_an_unclear_answer_that_was_in_truth_a_refusal_is_not_sent_again_either(
    owner: Owner, simulator: Any, fault: str
) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: {fault}]")
    makers.work(6)
    assert state_of(owner, client_id)[:2] == ("unknown", "charged")
    assert (simulator.count(), simulator.posts()) == (0, 1)


def test_a_sender_that_takes_a_lost_answer_for_a_job_not_sent_pays_for_two_jobs(
    owner: Owner, simulator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard removed: the usual retry after a connection error."""

    def retrying(answer: verdicts.Answer) -> verdicts.Verdict:
        if isinstance(answer, AnswerLost):
            return verdicts.Verdict(outcome=Outcome.NOT_SENT, reason="connection_error")
        return verdicts.judge_answer(answer)

    monkeypatch.setattr(dispatch, "judge_answer", retrying)
    simulator.add_fault({"drop_after_accept": True, "webhook": "none"}, times=1)
    client_id = makers.submit(owner)
    makers.work()
    assert state_of(owner, client_id)[0] == "completed"
    assert simulator.count() == 2
    assert jobs_run_twice(simulator) == [f"2 jobs of task {makers.task_of(owner, client_id).pk}"]
    simulator.reset()  # the fault was made on purpose; the invariants are asked after this
