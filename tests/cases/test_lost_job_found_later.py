"""A lost job is still found when it was long ago, when reads fail for hours, and never by a guess."""

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests import makers
from tests.cases.evidence import state_of
from tests.concurrency.submissions import begin_sending
from tests.makers import Owner
from videos.engine import dispatch, unknowns
from videos.models import VideoTask, WebhookCall
from videos.providers.base import LookupHit, Unclear
from videos.providers.registry import get_provider

pytestmark = pytest.mark.django_db


def lose_answer(owner: Owner, **fields: Any) -> tuple[str, Any]:
    client_id = makers.submit(owner, **fields)
    sending = begin_sending(client_id)
    dispatch.record_answer(sending=sending, answer=Unclear(reason="timeout"), response=None)
    return client_id, sending


def note_call(owner: Owner, client_id: str, upstream_id: str) -> None:
    WebhookCall.objects.create(
        task_id=makers.task_of(owner, client_id).pk,
        upstream_id=upstream_id,
        word="OK",
        received_at=timezone.now(),
        check_at=timezone.now(),
    )


def test_a_job_is_looked_for_from_the_time_it_was_sent_however_late_it_was_found_unclear(
    owner: Owner, simulator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All workers died after the POST and came back an hour later."""
    client_id, _ = lose_answer(owner)
    later = timezone.now() + timedelta(hours=1)
    VideoTask.objects.filter(client_id=client_id).update(
        first_unclear_at=later, entered_state_at=later, next_check_at=timezone.now()
    )
    asked: list[Any] = []

    async def list_nothing(*_: Any, since: Any, **__: Any) -> list[LookupHit]:
        asked.append(since)
        return []

    monkeypatch.setattr(unknowns, "_list", list_nothing)
    unknowns.check_unknown_due()
    (attempt,) = makers.attempts_of(owner, client_id)
    assert asked == [attempt.started_at - unknowns.LIST_MARGIN]


def test_a_job_that_fits_another_unknown_task_just_as_well_is_not_given_to_the_one_that_is_due(
    owner: Owner, simulator: Any
) -> None:
    stranger = makers.make_owner()
    mine, sending = lose_answer(owner, seed=7)
    theirs, _ = lose_answer(stranger, seed=7)
    provider = get_provider("fal")
    hit = LookupHit(
        upstream_id="job-of-one-of-them",
        input=json.loads(sending.submission.request.body),
        state="succeeded",
        sent_at=timezone.now(),
    )
    tasks = [makers.task_of(owner, mine)]
    assert unknowns.match_hits(tasks=tasks, hits=[hit], provider=provider) == {}
    both = [*tasks, makers.task_of(stranger, theirs)]
    assert unknowns.match_hits(tasks=both, hits=[hit], provider=provider) == {}


def test_a_call_back_is_asked_about_again_while_the_provider_does_not_know_its_job_yet(
    owner: Owner, simulator: Any
) -> None:
    client_id, _ = lose_answer(owner)
    note_call(owner, client_id, str(uuid.uuid4()))
    unknowns.confirm_calls_due()
    call = WebhookCall.objects.get()
    assert call.tries == 1 and call.check_at is not None
    assert state_of(owner, client_id)[0] == "unknown"
    for _ in range(unknowns.CALL_TRIES):
        makers.make_due()
        unknowns.confirm_calls_due()
    given_up = WebhookCall.objects.get()
    assert (given_up.tries, given_up.check_at) == (unknowns.CALL_TRIES, None)


def test_a_call_back_outlives_hours_in_which_the_provider_cannot_be_asked(
    owner: Owner, simulator: Any
) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: drop_after_accept lookup=never webhook_none]")
    dispatch.dispatch_due()
    note_call(owner, client_id, simulator.jobs()[0]["request_id"])
    simulator.add_fault({"401": True}, on="status")
    for tries in range(1, 3 * unknowns.CALL_TRIES):
        makers.make_due()
        unknowns.confirm_calls_due()
        call = WebhookCall.objects.get()
        assert call.tries == tries and call.check_at is not None
        assert call.check_at - timezone.now() < timedelta(minutes=6)
    simulator.clear_faults()
    makers.work()
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    assert WebhookCall.objects.get().check_at is None
