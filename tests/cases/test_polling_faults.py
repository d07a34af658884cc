"""C34: reads that fail are failed reads, and never a failed task."""

from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import kinds_of, state_of, wait_for
from tests.makers import PRICE_MICROS, Owner
from videos.engine import polling, results

pytestmark = pytest.mark.django_db
FAULTS = [
    "429",
    "408",
    "500",
    "502",
    "503",
    "504",
    "425",
    "empty",
    "broken",
    "html",
    "timeout",
    "reset",
    "close",
    "half",
]
TIMES = 5


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that hangs is given up after 0.2 s instead of 20 s."""
    monkeypatch.setattr(polling, "READ_SECONDS", 0.2)
    monkeypatch.setattr(results, "READ_SECONDS", 0.2)


@pytest.mark.parametrize("fault", FAULTS)
def test_five_failed_reads_of_the_status_never_fail_a_task(owner: Owner, simulator: Any, fault: str) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: status_{fault}={TIMES} webhook_none]")
    makers.make_due()
    makers.work_once()
    for failed in range(1, TIMES + 1):
        makers.make_due()
        assert polling.poll_due() == 1
        code = "provider_unreachable" if failed >= 3 else "processing"
        assert state_of(owner, client_id) in [
            ("processing", "charged", code),
            ("processing", "charged", "queued"),
        ], failed
        assert makers.task_of(owner, client_id).tries == failed
        assert kinds_of(owner, client_id) == ["charge"]
    makers.work()
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS
    assert (simulator.count(), simulator.posts()) == (1, 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_five_failed_reads_of_the_result_never_fail_a_task(owner: Owner, simulator: Any, fault: str) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: result_{fault}={TIMES} webhook_none]")
    for _ in range(TIMES + 1):
        makers.work(1)
        assert state_of(owner, client_id)[0] == "processing"
        assert kinds_of(owner, client_id) == ["charge"]
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]


@pytest.mark.parametrize("fault", ["500", "429", "reset", "half", "timeout"])
def test_five_failed_downloads_never_fail_a_task(owner: Owner, simulator: Any, fault: str) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: file_{fault}={TIMES} webhook_none]")
    for _ in range(TIMES + 1):
        makers.work(1)
        assert state_of(owner, client_id)[0] == "processing"
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]


def test_all_kinds_of_failed_reads_one_after_the_other_end_in_one_video(owner: Owner, simulator: Any) -> None:
    kinds = " ".join(f"status_{fault}=1" for fault in FAULTS)
    client_id = makers.submit(owner, prompt=f"a cat [sim: {kinds} webhook_none]")
    for _ in range(len(FAULTS) + 1):
        makers.work(1)
        assert state_of(owner, client_id)[1] == "charged"
    makers.work(3)
    assert state_of(owner, client_id) == ("completed", "settled", "completed")


@pytest.mark.parametrize("status", ["401", "402", "403"])
def test_a_refused_key_while_reading_is_an_alarm_and_the_task_waits(
    owner: Owner, simulator: Any, status: str
) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: status_{status}=3 webhook_none]")
    makers.work(3)
    assert state_of(owner, client_id)[:2] == ("processing", "charged")
    makers.work(4)
    assert state_of(owner, client_id) == ("completed", "settled", "completed")


def test_a_job_the_provider_does_not_know_for_a_while_is_read_again(owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: status_404=5 webhook_none]")
    makers.work(5)
    assert state_of(owner, client_id)[:2] == ("processing", "charged")
    makers.work(4)
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
