"""/api/files: the owner's cloud space, its bytes by ranges, and deleting a result with its video."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from files.models import StoredFile, StoredObject
from files.operations import remove_dead
from tests import makers
from tests.api.answers import assert_problem, charged, nothing_changes
from tests.makers import Owner

pytestmark = pytest.mark.django_db

UNSEEN = "0192e8a0-0000-7000-8000-000000000000"


def bytes_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


def stored_bytes(file: StoredFile) -> bytes:
    with default_storage.open(file.stored_id) as stream:
        content: bytes = stream.read()
    return content


@pytest.fixture
def made(owner: Owner, simulator: Any) -> str:
    """The client id of a completed task."""
    client_id = makers.submit(owner)
    makers.work()
    return client_id


@pytest.fixture
def file(made: str) -> StoredFile:
    return StoredFile.objects.get()


def test_a_result_is_listed_with_its_task(owner: Owner, made: str, file: StoredFile):
    answer = owner.api.get("/api/files")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    document = answer.json()
    assert document["next_cursor"] is None
    (entry,) = document["results"]
    assert entry == {
        "id": str(file.pk),
        "name": file.name,
        "kind": "result",
        "content_type": "video/mp4",
        "size": file.size_bytes,
        "sha256": file.sha256,
        "task": made,
        "created_at": file.created_at.isoformat().replace("+00:00", "Z"),
    }


def test_files_come_in_pages_newest_first(owner: Owner, simulator: Any):
    made = [makers.submit(owner) for _ in range(3)]
    makers.work()
    assert {makers.task_of(owner, client_id).state for client_id in made} == {"completed"}
    first = owner.api.get("/api/files", {"limit": "2"}).json()
    second = owner.api.get("/api/files", {"limit": "2", "cursor": first["next_cursor"]}).json()
    entries = first["results"] + second["results"]
    assert {entry["task"] for entry in entries} == set(made)
    assert [len(first["results"]), len(second["results"]), second["next_cursor"]] == [2, 1, None]
    assert [entry["created_at"] for entry in entries] == sorted(
        (entry["created_at"] for entry in entries), reverse=True
    )


def test_the_content_is_the_stored_bytes(owner: Owner, file: StoredFile):
    answer = owner.api.get(f"/api/files/{file.pk}/content")
    content = bytes_of(answer)
    assert answer.status_code == 200
    assert len(content) == file.size_bytes == int(answer["Content-Length"])
    assert content == stored_bytes(file)
    assert answer["Content-Type"] == "video/mp4"
    assert answer["ETag"] == f'"{file.sha256}"'
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["Cache-Control"] == "private, no-cache"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer["Content-Disposition"].startswith("inline; filename*=UTF-8''")


def test_a_download_is_an_attachment(owner: Owner, file: StoredFile):
    answer = owner.api.get(f"/api/files/{file.pk}/content?download")
    assert answer["Content-Disposition"].startswith("attachment; ")
    bytes_of(answer)


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=0-99", 0, 99),
        ("bytes=10-19", 10, 19),
        ("bytes=100-", 100, None),
        ("bytes=-5", -5, None),
        ("bytes=-999999999", 0, None),
        ("bytes=0-999999999999999999", 0, None),
    ],
)
def test_a_range_is_206_with_exactly_those_bytes(
    owner: Owner, file: StoredFile, asked: str, first: int, last: int | None
):
    whole, size = stored_bytes(file), file.size_bytes
    begin = first if first >= 0 else size + first
    end = size - 1 if last is None else last
    answer = owner.api.get(f"/api/files/{file.pk}/content", headers={"range": asked})
    assert answer.status_code == 206
    assert answer["Content-Range"] == f"bytes {begin}-{end}/{size}"
    assert answer["Content-Length"] == str(end - begin + 1)
    assert bytes_of(answer) == whole[begin : end + 1]


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=-0", "bytes=20-10"])
def test_a_range_that_cannot_be_is_416_with_the_size(owner: Owner, file: StoredFile, asked: str):
    answer = owner.api.get(f"/api/files/{file.pk}/content", headers={"range": asked})
    assert (answer.status_code, answer["Content-Range"]) == (416, f"bytes */{file.size_bytes}")


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,5-6", "lines=1-2", "bytes=-", "bytes=a-b", "bytes=" + "9" * 30 + "-"]
)
def test_anything_else_in_a_range_is_the_whole(owner: Owner, file: StoredFile, asked: str):
    answer = owner.api.get(f"/api/files/{file.pk}/content", headers={"range": asked})
    assert answer.status_code == 200
    assert len(bytes_of(answer)) == file.size_bytes


def test_a_stale_if_range_is_the_whole_and_a_fresh_one_the_range(owner: Owner, file: StoredFile):
    address = f"/api/files/{file.pk}/content"
    stale = owner.api.get(address, headers={"range": "bytes=0-9", "if-range": '"another"'})
    fresh = owner.api.get(address, headers={"range": "bytes=0-9", "if-range": f'"{file.sha256}"'})
    assert (stale.status_code, fresh.status_code) == (200, 206)
    assert (len(bytes_of(stale)), len(bytes_of(fresh))) == (file.size_bytes, 10)


def test_what_the_browser_has_is_304(owner: Owner, file: StoredFile):
    answer = owner.api.get(f"/api/files/{file.pk}/content", headers={"if-none-match": f'"{file.sha256}"'})
    assert (answer.status_code, answer.content) == (304, b"")


def test_c76_a_strangers_file_is_not_there(owner: Owner, file: StoredFile):
    stranger = makers.make_owner()
    assert stranger.api.get("/api/files").json()["results"] == []
    with nothing_changes():
        for key in (file.pk, UNSEEN):
            assert_problem(stranger.api.get(f"/api/files/{key}/content"), 404, "not_found")
            assert_problem(stranger.api.delete(f"/api/files/{key}"), 404, "not_found")


def test_deleting_a_result_buries_its_video_and_the_bytes_go_afterwards(
    owner: Owner, made: str, file: StoredFile
):
    path = Path(default_storage.path(file.stored_id))
    balance = owner.balance_micros
    answer = owner.api.delete(f"/api/files/{file.pk}")
    assert (answer.status_code, answer.content, answer["Cache-Control"]) == (204, b"", "no-store")
    document = assert_problem(makers.get(owner, made), 410, "deleted", id=made)
    assert document["charge"] == charged(owner, "4.160000", state="settled")
    assert makers.view(owner, made).claim.reason == "file_deleted"
    assert owner.balance_micros == balance
    assert path.exists()
    assert remove_dead(now=timezone.now()) == 1
    assert not path.exists()
    assert StoredObject.objects.get().removed_at is not None
    assert remove_dead(now=timezone.now()) == 0
    with nothing_changes():
        assert_problem(owner.api.delete(f"/api/files/{file.pk}"), 404, "not_found")
        assert_problem(owner.api.get(f"/api/files/{file.pk}/content"), 404, "not_found")


@pytest.mark.parametrize("accept", ["video/mp4", "video/webm,video/*;q=0.9", "text/html", ""])
def test_whatever_a_player_accepts_it_gets_the_video(owner: Owner, file: StoredFile, accept: str):
    answer = owner.api.get(f"/api/files/{file.pk}/content", headers={"Accept": accept})
    assert (answer.status_code, answer["Content-Type"]) == (200, "video/mp4")
    assert bytes_of(answer) == stored_bytes(file)
