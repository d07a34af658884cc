"""A result that takes longer than a lease to fetch is fetched once, and its worker keeps its say."""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tests import makers
from tests.makers import Owner
from videos.engine import leases, polling, results
from videos.models import VideoTask

pytestmark = pytest.mark.django_db


def storing(owner: Owner) -> str:
    """A task whose video is made and is to be fetched."""
    client_id = makers.submit(owner)
    while makers.task_of(owner, client_id).phase != "storing":
        makers.make_due()
        makers.dispatch.dispatch_due()
        polling.poll_due()
    return client_id


@pytest.mark.django_db(transaction=True)
def test_a_download_longer_than_its_lease_still_completes_the_task(
    owner: Owner, simulator: Any, settings: Any
) -> None:
    client_id = storing(owner)
    settings.LEASE_SECONDS = 1
    simulator.add_fault({"delay": 2.5}, on="file")
    makers.make_due()
    taken: list[Any] = []

    def another_worker() -> None:
        time.sleep(1.8)  # longer than the lease
        taken.extend(leases.take_due(work="store", provider="fal", limit=1))
        connection.close()

    thief = threading.Thread(target=another_worker)
    thief.start()
    assert results.store_due() == 1
    thief.join()
    assert taken == []
    task = makers.represent(owner, client_id)
    assert (task["state"], task["charge"]["state"]) == ("completed", "settled")


def test_without_renewal_another_worker_would_have_taken_it(owner: Owner, simulator: Any) -> None:
    client_id = storing(owner)
    makers.make_due()
    ((_, first),) = leases.take_due(work="store", provider="fal", limit=1)
    makers.let_leases_run_out()
    ((_, second),) = leases.take_due(work="store", provider="fal", limit=1)
    assert (leases.renew(first), leases.renew(second)) == (False, True)
    assert makers.task_of(owner, client_id).lease_token == second.token


def test_a_result_from_an_unknown_host_waits_and_is_not_given_up(
    owner: Owner, simulator: Any, settings: Any
) -> None:
    from videos.providers import registry

    settings.RESULT_GIVE_UP_SECONDS = 0
    client_id = storing(owner)
    settings.RESULT_HOSTS = []
    registry.clear()
    makers.work(rounds=10)
    task = makers.represent(owner, client_id)
    assert (task["state"], task["charge"]["state"]) == ("processing", "charged")


def test_drafts_of_killed_downloads_are_removed_after_a_day(settings: Any) -> None:
    folder = settings.DATA_DIR / "incoming"
    folder.mkdir(parents=True)
    (folder / "result-old").write_bytes(b"half a video")
    now = timezone.now()
    assert results.remove_old_drafts(now=now) == 0
    assert results.remove_old_drafts(now=now + timedelta(days=2)) == 1
    assert list(folder.iterdir()) == []
    assert not VideoTask.objects.exists()
