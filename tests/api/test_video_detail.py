"""GET /api/videos/{id}: the task as it is now, and nothing to a stranger."""

from typing import Any

import pytest

from tests import makers
from tests.api.answers import CHINESE, NOTHING_CHARGED, assert_problem, charged, nothing_changes
from tests.makers import Owner

pytestmark = pytest.mark.django_db


def test_a_task_is_told_as_its_submission_told_it(owner: Owner):
    posted = makers.post(owner, makers.order(id="a-video-1")).json()
    answer = makers.get(owner, "a-video-1")
    assert answer.status_code == 200
    assert answer.json() == posted
    assert answer["Cache-Control"] == "no-store"
    assert {name.strip() for name in answer["Vary"].split(",")} >= {"Accept-Language", "Authorization"}


def test_a_completed_task_has_its_result_its_end_and_its_charge(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    makers.work()
    task = makers.get(owner, client_id).json()
    assert (task["state"], task["submission_state"], task["progress"]) == ("completed", "accepted", 100)
    assert task["result"]["url"] == f"/api/files/{task['result']['file']}/content"
    assert task["charge"] == charged(owner, "4.160000", state="settled")
    assert (task["poll_after_seconds"], task["eta"], task["error"]) == (None, None, None)
    assert task["cancel"] == {"possible": False, "refund": None}
    assert task["accepted_at"] <= task["finished_at"]


def test_c10_a_failed_task_has_its_reason_and_the_money_is_back(owner: Owner, simulator: Any):
    client_id = makers.submit(owner, prompt='a [sim: fail="the model fell over"]')
    makers.work()
    task = makers.get(owner, client_id).json()
    assert (task["state"], task["result"], task["poll_after_seconds"]) == ("failed", None, None)
    assert task["charge"] == charged(owner, "4.160000", state="refunded", refunded="4.160000")
    assert "the model fell over" in task["error"]["detail"]
    assert owner.balance_micros == 100_000_000


def test_a_running_task_has_the_usual_time_and_says_when_to_look_again(owner: Owner, simulator: Any):
    client_id = makers.submit(owner, prompt="a [sim: run_forever]")
    makers.work(2)
    task = makers.get(owner, client_id).json()
    assert (task["state"], task["submission_state"]) == ("processing", "accepted")
    assert task["eta"] == {"low": 60, "high": 180}
    assert task["poll_after_seconds"] == 2
    assert task["charge"] == charged(owner, "4.160000")


@pytest.mark.parametrize(
    "unseen", ["never-sent-1", "short", "x" * 65, "b_0123456789", "%00%00%00%00%00%00%00%00", "é" * 8]
)
def test_an_unseen_or_malformed_id_is_404_not_received(owner: Owner, unseen: str):
    with nothing_changes():
        document = assert_problem(owner.api.get(f"/api/videos/{unseen}"), 404, "not_received")
    assert document["detail"] == (
        "The server has not received this request; nothing has been charged so far."
    )


@pytest.mark.parametrize("unseen", ["urn:uuid:" + "-" * 36, "urn:uuid:" + "a" * 36])
def test_what_is_nearly_a_uuid_is_404_too(owner: Owner, unseen: str):
    assert_problem(owner.api.get(f"/api/videos/{unseen}"), 404, "not_received")


def test_c76_a_strangers_id_is_answered_exactly_as_an_unseen_one(owner: Owner, simulator: Any):
    stranger = makers.make_owner()
    live, deleted = makers.submit(owner), makers.submit(owner)
    makers.work()
    assert owner.api.delete(f"/api/videos/{deleted}").status_code == 204
    with nothing_changes():
        answers = [makers.get(stranger, key) for key in (live, deleted, "never-sent-1")]
    documents = [assert_problem(answer, 404, "not_received") for answer in answers]
    for document in documents:
        del document["request_id"]
    assert documents[0] == documents[1] == documents[2]
    for answer in answers:
        del answer["X-Request-Id"]
    assert dict(answers[0].headers) == dict(answers[1].headers) == dict(answers[2].headers)


def test_c56_a_deleted_task_is_410_for_its_owner_alone(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    makers.work()
    owner.api.delete(f"/api/videos/{client_id}")
    document = assert_problem(makers.get(owner, client_id), 410, "deleted", id=client_id)
    assert document["charge"] == charged(owner, "4.160000", state="settled")
    assert "prompt" not in document
    assert "a cat on a roof" not in str(document)


def test_an_unchanged_task_is_304_without_a_body(owner: Owner):
    client_id = makers.submit(owner)
    etag = makers.get(owner, client_id)["ETag"]
    for condition in (etag, f"W/{etag}", f'"other", {etag}'):
        answer = owner.api.get(f"/api/videos/{client_id}", headers={"if-none-match": condition})
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", etag)
        assert answer["Cache-Control"] == "no-store"
        assert "Accept-Language" in answer["Vary"]


def test_the_validator_changes_with_the_language_and_the_text_does_too(owner: Owner):
    client_id = makers.submit(owner)
    english = makers.get(owner, client_id)
    chinese = owner.api.get(f"/api/videos/{client_id}", headers={**CHINESE, "if-none-match": english["ETag"]})
    assert chinese.status_code == 200
    assert chinese["ETag"] != english["ETag"]
    assert chinese["Content-Language"] == "zh-hans"
    assert chinese.json()["message"]["code"] == english.json()["message"]["code"]
    assert chinese.json()["message"]["text"] != english.json()["message"]["text"]


def test_the_validator_changes_with_the_state(owner: Owner, simulator: Any):
    client_id = makers.submit(owner)
    etag = makers.get(owner, client_id)["ETag"]
    makers.work()
    answer = owner.api.get(f"/api/videos/{client_id}", headers={"if-none-match": etag})
    assert answer.status_code == 200
    assert answer.json()["state"] == "completed"


def test_an_abandoned_id_was_never_charged(owner: Owner):
    owner.api.post("/api/videos/a-fenced-id/abandon")
    document = assert_problem(makers.get(owner, "a-fenced-id"), 410, "abandoned", id="a-fenced-id")
    assert document["charge"] == NOTHING_CHARGED
    assert document["detail"] == (
        "This request was not accepted and will not be accepted any more; nothing was charged."
    )


def test_one_statement_reads_a_task_with_its_money(owner: Owner, django_assert_num_queries: Any):
    client_id = makers.submit(owner)
    makers.get(owner, client_id)  # the token's last use is written once a minute
    with django_assert_num_queries(2):  # the token, the task
        assert makers.get(owner, client_id).status_code == 200


@pytest.mark.parametrize("held", ["{etag}", "W/{etag}", '"other",{etag}', '"other", W/{etag}', "*"])
def test_a_client_that_holds_this_answer_gets_304(owner: Owner, held: str):
    client_id = makers.submit(owner)
    etag = makers.get(owner, client_id)["ETag"]
    again = owner.api.get(f"/api/videos/{client_id}", headers={"If-None-Match": held.format(etag=etag)})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
    assert again["Cache-Control"] == "no-store"


def test_a_client_that_holds_another_answer_gets_this_one(owner: Owner):
    client_id = makers.submit(owner)
    answer = owner.api.get(f"/api/videos/{client_id}", headers={"If-None-Match": '"other", W/"another"'})
    assert (answer.status_code, answer.json()["id"]) == (200, client_id)
