"""C43: the call-back comes before the answer to the submission."""

import threading
from typing import Any

import pytest
from django.db import connection

from tests import makers
from tests.cases.evidence import kinds_of, state_of, wait_for
from tests.makers import PRICE_MICROS, Owner
from videos.engine import dispatch, unknowns
from videos.models import Evidence, OrphanJob, WebhookCall

pytestmark = pytest.mark.django_db(transaction=True)
EARLY = "a cat [sim: webhook_early delay=1.5 lookup=never]"


class Sender(threading.Thread):
    """A worker of its own that sends what is due, while the test looks on."""

    def run(self) -> None:
        try:
            dispatch.dispatch_due()
        finally:
            connection.close()


def assert_once(owner: Owner, client_id: str, simulator: Any) -> None:
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS
    (attempt,) = makers.attempts_of(owner, client_id)
    assert (attempt.outcome, attempt.upstream_id) == ("accepted", simulator.jobs()[0]["request_id"])
    assert (simulator.count(), simulator.posts(), OrphanJob.objects.count()) == (1, 1, 0)


def test_a_call_back_that_comes_first_binds_the_job_and_the_later_answer_changes_nothing(
    owner: Owner, simulator: Any, reached_by_webhooks: str
) -> None:
    client_id = makers.submit(owner, prompt=EARLY)
    sender = Sender()
    sender.start()
    try:
        wait_for(lambda: WebhookCall.objects.exists())
        assert unknowns.confirm_calls_due() == 1
        assert sender.is_alive()  # the submit is still waiting for its answer
        assert state_of(owner, client_id)[:2] == ("processing", "charged")
        assert [attempt.outcome for attempt in makers.attempts_of(owner, client_id)] == ["accepted"]
    finally:
        sender.join(10)
    assert state_of(owner, client_id)[:2] == ("processing", "charged")
    assert list(Evidence.objects.values_list("kind", flat=True)) == ["webhook"]
    makers.work()
    assert_once(owner, client_id, simulator)


def test_a_call_back_that_comes_first_and_is_looked_at_only_after_the_answer_changes_nothing(
    owner: Owner, simulator: Any, reached_by_webhooks: str
) -> None:
    client_id = makers.submit(owner, prompt=EARLY)
    dispatch.dispatch_due()  # returns after the answer, and the call came before it
    assert WebhookCall.objects.get().calls == 1
    makers.work()
    assert_once(owner, client_id, simulator)
    assert WebhookCall.objects.filter(check_at__isnull=False).count() == 0


def test_a_call_back_that_comes_first_is_all_there_is_when_the_answer_is_then_lost(
    owner: Owner, simulator: Any, reached_by_webhooks: str
) -> None:
    prompt = "a cat [sim: webhook_early delay=1 drop_after_accept lookup=never]"
    client_id = makers.submit(owner, prompt=prompt)
    makers.work()
    assert_once(owner, client_id, simulator)
