"""What goes wrong with a submit: each fault, and whether the job was taken."""

import http.client
import json
import time

import pytest

from tests.simulator.orders import ENDPOINT, KEY, accepted, submit
from tests.simulator_process import SimulatorProcess


@pytest.mark.parametrize(
    ("directive", "error", "jobs"),
    [
        ("drop_after_accept", ConnectionResetError, 1),
        ("drop_after_accept=close", http.client.RemoteDisconnected, 1),
        ("drop_after_accept=half", http.client.IncompleteRead, 1),
        ("drop_before_accept", http.client.RemoteDisconnected, 0),
        ("drop_before_accept=reset", ConnectionResetError, 0),
        ("hang", TimeoutError, 1),
        ("hang_before_accept", TimeoutError, 0),
    ],
)
def test_a_lost_answer_says_nothing_and_the_journal_says_what_happened(
    simulator: SimulatorProcess, directive: str, error: type[Exception], jobs: int
) -> None:
    with pytest.raises(error) as raised:
        submit(simulator, f"a cat [sim: {directive}]", timeout=0.5)
    assert type(raised.value) is error
    assert (simulator.count(), simulator.posts()) == (jobs, 1)
    assert [job["outcome"] for job in simulator.jobs()] == ["success"] * jobs


def test_half_of_the_answer_is_half_of_the_bytes(simulator: SimulatorProcess) -> None:
    with pytest.raises(http.client.IncompleteRead) as raised:
        submit(simulator, "a cat [sim: drop_after_accept=half]")
    assert raised.value.expected is not None
    assert abs(len(raised.value.partial) - raised.value.expected) <= 1
    assert raised.value.partial.startswith(b'{"status": "IN_QUEUE", "request_id": "')


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        (400, "Invalid request"),
        (401, "Cannot access application. Authentication is required."),
        (403, "User is locked. Reason: Exhausted balance"),
        (404, "Application not found"),
        (408, "Request timed out"),
        (409, "Conflict"),
        (413, "Request body too large"),
        (422, "Unprocessable input"),
        (425, "Too early"),
        (429, "Too many requests. Please slow down."),
        (500, "Internal server error"),
        (503, "Service unavailable"),
    ],
)
def test_a_refusal_is_typed_and_takes_no_job(simulator: SimulatorProcess, code: int, detail: str) -> None:
    reply = submit(simulator, f"a cat [sim: refuse={code}]")
    assert (reply.status, reply.json["detail"]) == (code, detail)
    assert (simulator.count(), simulator.posts()) == (0, 1)


@pytest.mark.parametrize(("directive", "jobs"), [("answer=502", 0), ("answer_after_accept=502", 1)])
def test_a_bad_gateway_is_html_and_may_come_after_the_job_was_taken(
    simulator: SimulatorProcess, directive: str, jobs: int
) -> None:
    reply = submit(simulator, f"a cat [sim: {directive}]")
    assert (reply.status, reply.headers["Content-Type"]) == (502, "text/html")
    assert reply.body.startswith(b"<html>")
    assert simulator.count() == jobs


@pytest.mark.parametrize("code", [408, 409, 425, 429, 500, 503])
def test_any_status_can_hide_a_job_that_was_taken(simulator: SimulatorProcess, code: int) -> None:
    assert submit(simulator, f"a cat [sim: answer_after_accept={code}]").status == code
    assert simulator.count() == 1


def test_a_refusal_says_what_it_is_told_to_say(simulator: SimulatorProcess) -> None:
    prompt = 'a cat [sim: refuse=422 detail="no faces" error_type=content_policy_violation retry_after=7]'
    reply = submit(simulator, prompt)
    assert reply.json == {"detail": "no faces", "error_type": "content_policy_violation"}
    assert reply.headers["Retry-After"] == "7"


@pytest.mark.parametrize("code", [201, 202])
def test_a_success_need_not_be_200(simulator: SimulatorProcess, code: int) -> None:
    reply = submit(simulator, f"a cat [sim: code={code}]")
    assert (reply.status, reply.json["request_id"]) == (code, simulator.jobs()[0]["request_id"])


def test_an_id_can_be_nested_or_missing(simulator: SimulatorProcess) -> None:
    nested = submit(simulator, "a cat [sim: shape=nested]")
    assert nested.json["data"]["request_id"] == simulator.jobs()[0]["request_id"]
    missing = submit(simulator, "a cat [sim: shape=no_id]")
    assert (missing.status, missing.json) == (200, {"status": "IN_QUEUE", "queue_position": 0})
    assert simulator.count() == 2


@pytest.mark.parametrize("body", ["html", "empty", "broken"])
def test_a_success_can_be_unreadable(simulator: SimulatorProcess, body: str) -> None:
    reply = submit(simulator, f"a cat [sim: body={body}]")
    assert reply.status == 200
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|Invalid"):
        json.loads(reply.body)
    assert simulator.count() == 1


def test_a_delay_is_before_the_job_or_after_it(simulator: SimulatorProcess) -> None:
    began = time.time()
    accepted(simulator, "a cat [sim: delay=0.4]")
    accepted(simulator, "a cat [sim: delay_before=0.4]")
    first, second = simulator.jobs()
    assert first["received_at"] - began < 0.3
    assert second["received_at"] - first["received_at"] >= 0.8


def test_eight_throttled_answers_and_then_a_good_one(simulator: SimulatorProcess) -> None:
    simulator.add_fault({"answer": 429, "retry_after": 1}, times=4)
    simulator.add_fault({"answer": 429}, times=4)
    replies = [submit(simulator) for _ in range(9)]
    assert [reply.status for reply in replies] == [429] * 8 + [200]
    assert [reply.headers["Retry-After"] for reply in replies] == ["1"] * 4 + [None] * 5
    assert (simulator.count(), simulator.posts()) == (1, 9)
    assert simulator.request("GET", "/_sim/faults").json == []


def test_a_rule_meets_only_what_it_names(simulator: SimulatorProcess) -> None:
    simulator.add_fault({"answer": 500}, endpoint="fal-ai/veo3.1/fast")
    simulator.add_fault({"answer": 503}, prompt_contains="dog")
    assert submit(simulator).status == 500
    assert submit(simulator, endpoint="fal-ai/veo3.1").status == 200
    assert submit(simulator, "a dog", endpoint="fal-ai/veo3.1").status == 503
    simulator.clear_faults()
    assert submit(simulator, "a dog").status == 200


def test_a_rule_can_decide_the_course_of_a_job(simulator: SimulatorProcess) -> None:
    simulator.add_fault({"fail": "no luck", "drop_after_accept": True}, times=1)
    with pytest.raises(ConnectionResetError):
        submit(simulator)
    accepted(simulator)
    assert [job["outcome"] for job in simulator.jobs()] == ["error", "success"]


def test_a_rule_survives_a_kill(simulator: SimulatorProcess) -> None:
    simulator.add_fault({"answer": 429}, times=2)
    assert submit(simulator).status == 429
    simulator.restart(kill=True)
    assert [submit(simulator).status for _ in range(2)] == [429, 200]


@pytest.mark.parametrize("body", [b"{", {"fault": 1}, {"match": {"on": "moon"}, "fault": {}}])
def test_a_rule_that_cannot_be_understood_changes_nothing(simulator: SimulatorProcess, body: object) -> None:
    assert simulator.request("POST", "/_sim/faults", body=body).status == 400
    assert simulator.request("GET", "/_sim/faults").json == []


def test_a_body_above_the_limit_is_413_and_counted(simulator: SimulatorProcess) -> None:
    raw = b'{"prompt": "' + b"x" * (33 * 1024 * 1024) + b'"}'
    reply = simulator.request("POST", f"/{ENDPOINT}", body=raw, key=KEY)
    assert reply.status == 413
    assert (simulator.count(), simulator.posts()) == (0, 1)
