"""How directives, faults and courses are read; no process is needed."""

import json
from decimal import Decimal

import pytest

from simulator.directives import read_directives
from simulator.faults import (
    Answer,
    AnswerFault,
    Cut,
    InvalidRule,
    distort,
    error_answer,
    read_fault,
    read_rule,
    read_turn,
)
from simulator.jobs import Phase, decide, phase_at, plan_seconds, queue_position
from tests.simulator.orders import make_job


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("a cat", {}),
        ("a cat [sim: drop_after_accept]", {"drop_after_accept": True}),
        ('[SIM: Fail="content policy" seconds=3] a cat', {"fail": "content policy", "seconds": 3.0}),
        ("[sim:a;b=1,c='x]y', d = no]", {"a": True, "b": 1.0, "c": "x]y", "d": False}),
        ("[sim: status-429=5] and [sim: status_429=6]", {"status_429": 6.0}),
        (r'[sim: fail="bad\u0000text\u0001"]', {"fail": "bad\x00text\x01"}),
        ('[sim: url=""]', {"url": ""}),
        ("[sim: file=html", {}),
        (None, {}),
    ],
)
def test_directives_are_read_leniently(prompt: object, expected: dict[str, object]) -> None:
    assert read_directives(prompt) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, AnswerFault()),
        ({"drop_after_accept": True}, AnswerFault(cut=Cut.RESET)),
        ({"drop_after_accept": "half"}, AnswerFault(cut=Cut.HALF)),
        ({"drop_before_accept": True}, AnswerFault(takes_job=False, cut=Cut.CLOSE)),
        ({"hang": 5.0, "delay": 1.0}, AnswerFault(hang_seconds=5.0, wait=1.0)),
        ({"hang_before_accept": True}, AnswerFault(takes_job=False, hang_seconds=120.0)),
        ({"refuse": 403.0, "detail": "no"}, AnswerFault(takes_job=False, status=403, detail="no")),
        ({"answer": 429, "retry_after": 2}, AnswerFault(takes_job=False, status=429, retry_after="2")),
        ({"answer_after_accept": 500.0}, AnswerFault(status=500)),
        ({"drop": True, "refuse": 400.0}, AnswerFault(takes_job=False, status=400)),
    ],
)
def test_a_fault_says_whether_the_job_is_taken(told: dict[str, object], expected: AnswerFault) -> None:
    assert read_fault(told) == expected  # type: ignore[arg-type]


def test_turns_follow_each_other_in_the_order_written_and_then_end() -> None:
    directives = read_directives("[sim: status_429=2 status_502=1 status_empty=1 result_500]")
    statuses = [read_turn(directives, "status", turn=turn).status for turn in range(5)]
    assert statuses == [429, 429, 502, None, None]
    assert read_turn(directives, "status", turn=3).body == "empty"
    assert read_turn(directives, "status", turn=4) == AnswerFault()
    assert read_turn(directives, "result", turn=99).status == 500


def test_a_nested_answer_keeps_its_id_one_level_down_and_no_id_leaves_none() -> None:
    answer = Answer(200, b'{"request_id": "r", "status_url": "u", "status": "IN_QUEUE"}')
    assert json.loads(distort(answer, AnswerFault(shape="nested")).body)["data"]["request_id"] == "r"
    assert json.loads(distort(answer, AnswerFault(shape="no_id")).body) == {"status": "IN_QUEUE"}
    assert distort(answer, AnswerFault(success_code=201)).status == 201
    assert distort(answer, AnswerFault(body="empty")).body == b""
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        json.loads(distort(answer, AnswerFault(body="broken")).body)


def test_errors_are_typed_json_and_a_bad_gateway_is_html() -> None:
    refused = error_answer(403)
    assert (refused.status, json.loads(refused.body)) == (
        403,
        {"detail": "User is locked. Reason: Exhausted balance"},
    )
    failed = error_answer(500)
    assert failed.headers == {"X-Fal-Error-Type": "internal_error"}
    assert error_answer(502).content_type == "text/html"


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"fault": "x"},
        {"match": {"on": "nowhere"}, "fault": {}},
        {"times": 0, "fault": {}},
        {"times": True, "fault": {}},
    ],
)
def test_a_rule_that_cannot_be_understood_is_refused(document: object) -> None:
    with pytest.raises(InvalidRule):
        read_rule(document, rule_id=1)


def test_a_rule_meets_its_endpoint_and_the_paths_below_it_alone() -> None:
    rule = read_rule({"match": {"endpoint": "fal-ai/veo3.1"}, "fault": {"502": True}}, rule_id=1)
    assert rule.fault == {"answer": "502", "502": True}
    assert rule.meets(on="submit", endpoint="fal-ai/veo3.1", prompt="")
    assert rule.meets(on="submit", endpoint="fal-ai/veo3.1/fast", prompt="")
    assert not rule.meets(on="submit", endpoint="fal-ai/veo3.10", prompt="")
    assert not rule.meets(on="status", endpoint="fal-ai/veo3.1", prompt="")


def test_a_job_is_a_function_of_the_time() -> None:
    moments = [100.0, 101.5, 102.9, 103.0, 108.9, 109.0]
    assert [phase_at(make_job(), moment).name for moment in moments] == [
        "IN_QUEUE",
        "IN_QUEUE",
        "IN_QUEUE",
        "IN_PROGRESS",
        "IN_PROGRESS",
        "COMPLETED",
    ]
    assert [queue_position(make_job(), moment) for moment in moments[:3]] == [2, 1, 0]
    assert phase_at(make_job(queue_seconds=None), 1e12) is Phase.IN_QUEUE
    assert phase_at(make_job(run_seconds=None), 1e12) is Phase.IN_PROGRESS


def test_a_third_of_the_time_is_spent_in_the_queue_and_directives_overrule_it() -> None:
    assert plan_seconds({}, job_seconds=6.0) == (2.0, 4.0)
    assert plan_seconds(read_directives("[sim: seconds=9 queue_seconds=1]"), job_seconds=0.0) == (1.0, 8.0)
    assert plan_seconds(read_directives("[sim: queue_forever]"), job_seconds=6.0)[0] is None
    assert plan_seconds(read_directives("[sim: run_forever]"), job_seconds=6.0)[1] is None
    assert plan_seconds(read_directives("[sim: webhook_early]"), job_seconds=6.0) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("prompt", "outcome", "code", "billed", "cost"),
    [
        ("", "success", 200, True, "0.80"),
        ("[sim: billed=no]", "success", 200, False, "0.00"),
        ("[sim: units=2.5]", "success", 200, True, "0.50"),
        ("[sim: fail]", "error", 500, False, "0.00"),
        ("[sim: fail fail_code=422 billed]", "user_error", 422, True, "0.80"),
        ("[sim: refused_output]", "user_error", 422, False, "0.00"),
        ("[sim: refused_output billed]", "user_error", 422, True, "0.80"),
    ],
)
def test_only_what_is_said_is_billed(prompt: str, outcome: str, code: int, billed: bool, cost: str) -> None:
    verdict = decide(make_job(prompt))
    assert (verdict.outcome, verdict.status_code, verdict.billed) == (outcome, code, billed)
    assert verdict.cost == Decimal(cost)
