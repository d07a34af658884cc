"""How fal's answers to a submission are read: exact tables of status and body."""

from typing import Any

import pytest

from tests.domain.provider_makers import BASE, HTML, answer, fal
from videos.providers import base
from videos.providers.base import (
    Accepted,
    AccountTrouble,
    Rejected,
    Throttled,
    Unclear,
    WrongAddress,
)

HANDLES = {
    "status_url": f"{BASE}/fal-ai/veo3.1/requests/r1/status",
    "response_url": f"{BASE}/fal-ai/veo3.1/requests/r1",
    "cancel_url": f"{BASE}/fal-ai/veo3.1/requests/r1/cancel",
}
TAKEN = {"status": "IN_QUEUE", "request_id": "r1", "queue_position": 3, **HANDLES}
ACCEPTED = Accepted(upstream_id="r1", handles=HANDLES, queue_position=3)


def error_list(field: str, kind: str = "value_error", message: str = "no") -> dict[str, Any]:
    return {"detail": [{"loc": ["body", field], "msg": message, "type": kind}]}


@pytest.mark.parametrize("status", [200, 201, 202])
def test_an_id_means_accepted_whatever_the_success_status_c20(status: int) -> None:
    assert fal().read_submit(answer(status, TAKEN)) == ACCEPTED


def test_an_id_one_level_down_is_accepted_c20() -> None:
    assert fal().read_submit(answer(200, {"code": 0, "data": TAKEN})) == ACCEPTED


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"status": "IN_QUEUE"},
        {"request_id": ""},
        {"request_id": None},
        {"request_id": 5},
        {"request_id": ["r1"]},
        {"request_id": "a b"},
        {"request_id": "r1\x00"},
        {"request_id": "x" * 201},
        {"data": {"data": TAKEN}},
        {"data": [TAKEN]},
        [TAKEN],
        "r1",
        None,
        7,
        b"",
        b"OK",
        HTML,
        b'{"request_id": "r1"',
        b"\xff\xfe\x00",
        b'{"request_id": "r1", "queue_position": NaN}',
    ],
)
def test_a_success_without_a_usable_id_is_unclear(body: Any) -> None:
    assert isinstance(fal().read_submit(answer(200, body)), Unclear)


@pytest.mark.parametrize("place", [-1, "3", 1.5, True, None, 10**12])
def test_an_odd_place_in_the_queue_does_not_cost_the_id(place: Any) -> None:
    read = fal().read_submit(answer(200, {**TAKEN, "queue_position": place}))
    assert read == Accepted(upstream_id="r1", handles=HANDLES, queue_position=None)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (302, b"", WrongAddress(reason="status_302")),
        (400, HTML, WrongAddress(reason="status_400_not_own")),
        (400, b"", WrongAddress(reason="status_400_not_own")),
        (400, {}, WrongAddress(reason="status_400_not_own")),
        (403, {"message": "Forbidden"}, WrongAddress(reason="status_403_not_own")),
        (403, HTML, WrongAddress(reason="status_403_not_own")),
        (422, ["no"], WrongAddress(reason="status_422_not_own")),
        (404, {"detail": "Application not found"}, WrongAddress(reason="status_404")),
        (404, HTML, WrongAddress(reason="status_404_not_own")),
        (405, {"detail": "Method Not Allowed"}, WrongAddress(reason="status_405")),
        (405, b"", WrongAddress(reason="status_405_not_own")),
        (415, {"detail": "x"}, WrongAddress(reason="status_415")),
        (408, {"detail": "x"}, Unclear(reason="status_408")),
        (409, {"detail": "x"}, Unclear(reason="status_409")),
        (425, {"detail": "x"}, Unclear(reason="status_425")),
        (500, {"detail": "x", "error_type": "internal_error"}, Unclear(reason="status_500")),
        (502, HTML, Unclear(reason="status_502")),
        (503, {"detail": "x", "error_type": "runner_scheduling_failure"}, Unclear(reason="status_503")),
        (504, b"", Unclear(reason="status_504")),
        (429, HTML, Unclear(reason="status_429_not_own")),
        (429, b"", Unclear(reason="status_429_not_own")),
        (429, {"detail": "Too many requests"}, Throttled(retry_after_seconds=None)),
        (401, {"detail": "Unauthorized"}, AccountTrouble(reason="key_refused")),
        (402, {"detail": "Payment required"}, AccountTrouble(reason="out_of_funds")),
        (403, {"detail": "User is locked. Reason: Exhausted balance"}, AccountTrouble(reason="out_of_funds")),
        (403, {"detail": "User is locked. Reason: TOP_UP"}, AccountTrouble(reason="out_of_funds")),
        (403, {"detail": "User is locked. Reason: Admin lock"}, AccountTrouble(reason="locked")),
        (403, {"detail": "Forbidden"}, AccountTrouble(reason="forbidden")),
        (400, {"detail": "Bad input"}, Rejected(code="input_invalid", detail="Bad input")),
        (413, {"detail": "Too large"}, Rejected(code="input_invalid", detail="Too large")),
    ],
)
def test_a_submission_that_was_not_accepted(status: int, body: Any, expected: base.SubmitAnswer) -> None:
    assert fal().read_submit(answer(status, body)) == expected


@pytest.mark.parametrize(
    ("field", "ours"),
    [
        ("prompt", "prompt"),
        ("image_url", "image"),
        ("duration", "seconds"),
        ("resolution", "resolution"),
        ("aspect_ratio", "aspect_ratio"),
        ("generate_audio", "audio"),
        ("seed", "seed"),
        ("something_new", None),
    ],
)
def test_a_typed_refusal_names_our_field(field: str, ours: str | None) -> None:
    expected = Rejected(code="input_invalid", detail="no", retryable=False, field=ours)
    assert fal().read_submit(answer(422, error_list(field))) == expected
    bare_list = error_list(field)["detail"]
    assert fal().read_submit(answer(422, bare_list)) == expected


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (error_list("prompt", "content_policy_violation"), "prompt_refused"),
        (error_list("image_url", "content_policy_violation"), "image_refused"),
        ({"detail": "flagged", "error_type": "content_policy_violation"}, "prompt_refused"),
        (
            {
                "detail": [
                    *error_list("duration")["detail"],
                    *error_list("image_url", "content_policy_violation")["detail"],
                ]
            },
            "image_refused",
        ),
    ],
)
def test_a_refusal_by_the_content_rules_says_of_what_c72(body: Any, code: str) -> None:
    read = fal().read_submit(answer(422, body))
    assert isinstance(read, Rejected)
    assert (read.code, read.retryable) == (code, False)


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("7", None, 7),
        ("0", None, 0),
        ("999999999", None, 86400),
        ("-1", None, None),
        ("soon", None, None),
        ("", None, None),
        ("Mon, 30 Nov 2026 12:00:30 GMT", "Mon, 30 Nov 2026 12:00:00 GMT", 30),
        ("Mon, 30 Nov 2026 11:00:00 GMT", "Mon, 30 Nov 2026 12:00:00 GMT", 0),
        ("Mon, 30 Nov 2026 12:00:30 GMT", None, None),
        ("\u0663", None, None),
    ],
)
def test_throttling_says_how_long_to_wait_c19(value: str, date: str | None, seconds: int | None) -> None:
    headers = {"retry_after": value, **({"date": date} if date else {})}
    read = fal().read_submit(answer(429, {"detail": "slow down"}, **headers))
    assert read == Throttled(retry_after_seconds=seconds)
