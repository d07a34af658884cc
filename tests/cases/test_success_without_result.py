"""C38, C73: success with nothing in it, and links that expire."""

from datetime import timedelta
from typing import Any

import pytest

from files.models import StoredFile
from tests import makers
from tests.cases.evidence import kinds_of, state_of, wait_for
from tests.makers import PRICE_MICROS, Owner
from videos.engine import results

pytestmark = pytest.mark.django_db
NOTHING = ["url=missing", "url=empty", "url=null", "url=list"]
FOR_EVER = {
    **dict.fromkeys(NOTHING, "no_url"),
    "file=html": "not_a_video",
    "file=disguised": "not_a_video",
    "file=empty": "empty:200",
}
TRIES, LIMIT_SECONDS = 8, 150


def try_to_store(owner: Owner, client_id: str, *, times: int) -> None:
    for _ in range(times):
        makers.make_due()
        assert results.store_due() == 1, state_of(owner, client_id)


@pytest.mark.parametrize("nothing", NOTHING)
def test_a_success_without_an_address_twice_and_then_with_one_is_completed(
    owner: Owner, simulator: Any, nothing: str
) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: {nothing} url_reads=2]")
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]
    assert owner.balance_micros == 100_000_000 - PRICE_MICROS


@pytest.mark.parametrize(("nothing", "expected"), FOR_EVER.items())
def test_a_success_that_never_holds_a_video_is_given_up_after_bounded_tries_and_refunded_with_that_reason(
    owner: Owner, simulator: Any, nothing: str, expected: str
) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: {nothing} webhook_none]")
    makers.work_once()
    makers.make_due()
    while makers.task_of(owner, client_id).phase != "storing":
        makers.make_due()
        makers.polling.poll_due()
    try_to_store(owner, client_id, times=TRIES + 2)
    assert state_of(owner, client_id)[:2] == ("processing", "charged")  # tries enough, but not the time
    makers.age([client_id], first_try_at=timedelta(seconds=LIMIT_SECONDS))
    try_to_store(owner, client_id, times=1)
    assert state_of(owner, client_id) == ("failed", "refunded", "no_result")
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    assert makers.get(owner, client_id).json()["error"]["detail"] == expected
    assert owner.balance_micros == 100_000_000
    assert StoredFile.objects.count() == 0


def test_the_time_alone_gives_nothing_up_before_the_tries_are_used(owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: url=missing webhook_none]")
    while makers.task_of(owner, client_id).tries < 1:
        makers.work(1)
    makers.age([client_id], first_try_at=timedelta(hours=1))
    try_to_store(owner, client_id, times=TRIES - 1 - makers.task_of(owner, client_id).tries)
    assert makers.task_of(owner, client_id).tries == TRIES - 1
    assert state_of(owner, client_id)[:2] == ("processing", "charged")
    try_to_store(owner, client_id, times=1)
    assert state_of(owner, client_id) == ("failed", "refunded", "no_result")


def test_our_copy_plays_after_the_provider_s_link_has_expired(owner: Owner, simulator: Any) -> None:
    """C73: the link works for a moment, then answers 403."""
    client_id = makers.submit(owner, prompt="a cat [sim: link_seconds=1.5]")
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    link = f"/files/{simulator.jobs()[0]['request_id']}/video.mp4"
    wait_for(lambda: simulator.request("GET", link).status == 403)
    result = makers.get(owner, client_id).json()["result"]
    answer = owner.api.get(result["url"])
    content = b"".join(answer.streaming_content)
    assert (answer.status_code, answer["Content-Type"]) == (200, "video/mp4")
    assert content[4:8] == b"ftyp"
    stored = StoredFile.objects.get(pk=result["file"])
    assert stored.size_bytes == len(content)


def test_a_link_that_expired_is_asked_for_anew(owner: Owner, simulator: Any) -> None:
    client_id = makers.submit(owner, prompt="a cat [sim: link_fresh file_403=3]")
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]


@pytest.mark.parametrize("gone", ["link_seconds=-1", "file_404", "file_410", "file_403"])
def test_a_video_that_is_no_longer_served_is_refunded_with_a_clear_reason(
    owner: Owner, simulator: Any, settings: Any, gone: str
) -> None:
    settings.RESULT_GIVE_UP_SECONDS = 0
    settings.RESULT_GIVE_UP_TRIES = 3
    client_id = makers.submit(owner, prompt=f"a cat [sim: {gone}]")
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "failed")
    assert state_of(owner, client_id) == ("failed", "refunded", "result_lost")
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    assert owner.balance_micros == 100_000_000
    assert makers.task_of(owner, client_id).tries == 2  # two were counted, the third decided


def test_trouble_of_our_own_storage_gives_nothing_up(
    owner: Owner, simulator: Any, settings: Any, tmp_path: Any
) -> None:
    settings.RESULT_GIVE_UP_SECONDS = 0
    settings.RESULT_GIVE_UP_TRIES = 1
    (tmp_path / "files").write_text("a file where the folder should be")
    client_id = makers.submit(owner)
    makers.work(6)
    assert state_of(owner, client_id) == ("processing", "charged", "storing")
    (tmp_path / "files").unlink()
    wait_for(lambda: makers.work(1) or state_of(owner, client_id)[0] == "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]
