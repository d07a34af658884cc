"""What was begun is sent: one task in trouble leaves no other of its run between attempt and POST."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.simulator_process import SimulatorProcess
from videos.engine import dispatch
from videos.models import Attempt, Payload, VideoTask

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_a_task_that_cannot_be_begun_keeps_no_other_from_being_sent(simulator: SimulatorProcess) -> None:
    owner = makers.make_owner()
    ids = [makers.submit(owner) for _ in range(5)]
    for place, client_id in enumerate(ids):
        due_at = timezone.now() - timedelta(seconds=60 - place)
        VideoTask.objects.filter(client_id=client_id).update(next_check_at=due_at)
    Payload.objects.filter(task__client_id=ids[2]).delete()  # its words are lost, so nothing can be sent
    with pytest.raises(Payload.DoesNotExist):
        dispatch.dispatch_provider("fal")
    states = [makers.task_of(owner, client_id).state for client_id in ids]
    assert states == ["processing", "processing", "submitting", "processing", "processing"]
    assert simulator.posts() == 4
    assert Attempt.objects.filter(outcome="accepted").count() == Attempt.objects.count() == 4
    assert_books_balance()
