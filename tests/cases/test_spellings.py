"""C36: providers and gateways spell their words in many ways."""

import json
from typing import Any

import pytest

from core.http import HttpResponse
from tests import makers
from tests.cases.evidence import kinds_of, state_of
from tests.makers import Owner
from videos.models import TaskEvent
from videos.providers.base import Cancelled, ProviderFailed, Succeeded, UnseenWord
from videos.providers.fal_answers import read_status

GOOD = ["succeed", "succeeded", "SUCCESS", "Completed", " done ", "COMPLETED", "complete", "finished", "ok"]
BAD = {
    "fail": "failed",
    "FAILURE": "failed",
    "error": "failed",
    "Failed": "failed",
    "expired": "expired",
    "timed-out": "expired",
    "rejected": "rejected",
    " Refused ": "rejected",
}
CANCELLED = ["cancelled", "canceled", "CANCELLED"]
UNSEEN = ["paused_for_review", "almost", "0", "完成了吗", "succeeded!", "null"]


def reading_of(word: Any) -> Any:
    return read_status(HttpResponse(200, {}, json.dumps({"status": word}).encode()))


@pytest.mark.parametrize("word", GOOD)
def test_every_spelling_of_success_reads_as_one_success(word: str) -> None:
    assert reading_of(word) == Succeeded()


@pytest.mark.parametrize(("word", "reason"), BAD.items())
def test_every_spelling_of_failure_reads_as_one_failure_with_its_own_reason(word: str, reason: str) -> None:
    reading = reading_of(word)
    assert isinstance(reading, ProviderFailed)
    assert (reading.code, reading.reason) == ("provider_failed", reason)


@pytest.mark.parametrize("word", CANCELLED)
def test_both_spellings_of_cancelled_read_as_one(word: str) -> None:
    assert reading_of(word) == Cancelled()


@pytest.mark.parametrize("word", UNSEEN)
def test_an_unseen_word_is_not_a_failure(word: str) -> None:
    assert isinstance(reading_of(word), UnseenWord)


@pytest.mark.django_db
@pytest.mark.parametrize("word", ["succeed", "SUCCESS", " done "])
def test_a_job_that_ends_in_another_word_of_success_is_one_completed_task(
    owner: Owner, simulator: Any, word: str
) -> None:
    client_id = makers.submit(owner, prompt=f'a cat [sim: status_word="{word}"]')
    makers.work()
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("word", "reason"),
    [("FAILURE", "failed"), ("expired", "expired"), ("rejected", "rejected"), ("canceled", "cancelled")],
)
def test_a_job_that_ends_in_another_word_of_failure_is_one_refund_and_keeps_the_difference(
    owner: Owner, simulator: Any, word: str, reason: str
) -> None:
    client_id = makers.submit(owner, prompt=f'a cat [sim: status_word="{word}"]')
    makers.work()
    assert state_of(owner, client_id) == ("failed", "refunded", "provider_failed")
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    task_id = makers.task_of(owner, client_id).pk
    ended = TaskEvent.objects.get(task_id=task_id, to_state="failed")
    assert ended.cause == f"provider_failed:{reason}"


@pytest.mark.django_db
def test_a_word_nobody_knows_keeps_the_task_running_until_a_known_one_comes(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt='a cat [sim: status_word="gift_wrapping"]')
    makers.work(6)
    assert state_of(owner, client_id)[:2] == ("processing", "charged")
    assert kinds_of(owner, client_id) == ["charge"]
