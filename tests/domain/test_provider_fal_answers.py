"""How fal's answers are read: exact tables of status and body, and nothing ever raises."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.http import HttpResponse
from tests.domain.provider_makers import BASE, HTML, KEY, answer, fal
from videos.providers import base
from videos.providers.base import (
    Accepted,
    AccountTrouble,
    AlreadyCompleted,
    Cancelled,
    CancelNotFound,
    CancelRequested,
    CancelUnclear,
    LookupHit,
    LookupPage,
    NotFound,
    NotReady,
    NoUrl,
    ProviderFailed,
    ReadTrouble,
    Ready,
    Rejected,
    Running,
    Succeeded,
    Throttled,
    Unclear,
    UnseenWord,
    Usage,
    Waiting,
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


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (202, {"status": "IN_QUEUE", "queue_position": 2}, Waiting(queue_position=2)),
        (202, {"status": "IN_QUEUE"}, Waiting(queue_position=None)),
        (202, {"status": "IN_PROGRESS", "logs": None}, Running(progress=None)),
        (200, {"status": "COMPLETED", "metrics": {}}, Succeeded()),
        (200, {"status": "COMPLETED", "error": None, "error_type": None}, Succeeded()),
        (
            200,
            {"status": "COMPLETED", "error": "boom", "error_type": "runner_server_error"},
            ProviderFailed(
                code="provider_failed", detail="boom", reason="runner_server_error", retryable=True
            ),
        ),
        (
            200,
            {"status": "COMPLETED", "error": "boom"},
            ProviderFailed(code="provider_failed", detail="boom", reason="failed", retryable=False),
        ),
        # What was refused and billed is told by the result alone.
        (
            200,
            {"status": "COMPLETED", "error": "flagged", "error_type": "content_policy_violation"},
            Succeeded(),
        ),
        (200, {"status": "COMPLETED", "error": "x", "error_type": "client_cancelled"}, Cancelled()),
        (202, {"status": "PONDERING"}, UnseenWord(word="PONDERING")),
        (202, {"status": ""}, ReadTrouble(reason="no_status")),
        (202, {"status": None}, ReadTrouble(reason="no_status")),
        (202, {"status": ["COMPLETED"]}, ReadTrouble(reason="no_status")),
        (200, {}, ReadTrouble(reason="no_status")),
        (200, [], ReadTrouble(reason="not_json")),
        (200, HTML, ReadTrouble(reason="not_json")),
        (200, b"", ReadTrouble(reason="not_json")),
        (200, b'{"status": "COMPL', ReadTrouble(reason="not_json")),
        (404, {"detail": "Request not found"}, NotFound()),
        (404, HTML, ReadTrouble(reason="status_404")),
        (401, {"detail": "Unauthorized"}, AccountTrouble(reason="key_refused")),
        (403, HTML, AccountTrouble(reason="forbidden")),
        (302, b"", ReadTrouble(reason="status_302")),
        (422, {"detail": "x"}, ReadTrouble(reason="status_422")),
    ],
)
def test_a_status_is_read(status: int, body: Any, expected: base.StatusReading) -> None:
    assert fal().read_status(answer(status, body)) == expected


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("body", [HTML, b"", {"detail": "x", "error_type": "internal_error"}])
def test_a_passing_fault_of_a_read_is_never_a_failure_c34(status: int, body: Any) -> None:
    expected = ReadTrouble(reason=f"status_{status}", retry_after_seconds=9)
    assert fal().read_status(answer(status, body, retry_after="9")) == expected
    assert fal().read_result(answer(status, body, retry_after="9")) == expected


@pytest.mark.parametrize("word", ["succeed", "succeeded", "SUCCESS", "Completed", " done ", "COMPLETED"])
def test_spellings_of_success_mean_fetch_the_result_c36(word: str) -> None:
    assert fal().read_status(answer(200, {"status": word})) == Succeeded()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("fail", "failed"),
        ("FAILURE", "failed"),
        ("error", "failed"),
        ("failed", "failed"),
        ("expired", "expired"),
        ("rejected", "rejected"),
    ],
)
def test_spellings_of_failure_keep_their_difference_c36(word: str, reason: str) -> None:
    assert fal().read_status(answer(200, {"status": word})) == ProviderFailed(
        code="provider_failed", detail="", reason=reason, retryable=False
    )


@pytest.mark.parametrize("word", ["cancelled", "canceled", "CANCELLED"])
def test_spellings_of_cancellation_c36(word: str) -> None:
    assert fal().read_status(answer(200, {"status": word})) == Cancelled()


def test_an_unseen_word_is_cleaned_and_capped() -> None:
    read = fal().read_status(answer(202, {"status": "x\x00\u202e" + "y" * 500}))
    assert isinstance(read, UnseenWord)
    assert (len(read.word), read.word[:3]) == (60, "x y")


@pytest.mark.parametrize(
    ("body", "url"),
    [
        ({"video": {"url": "https://v3.fal.media/a.mp4"}}, "https://v3.fal.media/a.mp4"),
        ({"video": "https://v3.fal.media/a.mp4"}, "https://v3.fal.media/a.mp4"),
        ({"video": [{"url": "https://v3.fal.media/a.mp4"}]}, "https://v3.fal.media/a.mp4"),
        ({"videos": [{"url": " https://v3.fal.media/a.mp4 "}]}, "https://v3.fal.media/a.mp4"),
    ],
)
def test_a_result_with_an_address_is_ready(body: Any, url: str) -> None:
    read = fal().read_result(answer(200, body, x_fal_billable_units="8"))
    assert read == Ready(url=url, usage=Usage(units=Decimal(8)))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"video": None},
        {"video": ""},
        {"video": []},
        {"video": {}},
        {"video": {"url": None}},
        {"video": {"url": ""}},
        {"video": {"url": "  "}},
        {"video": {"url": []}},
        {"video": {"url": "x" * 3000}},
        {"video": 7},
        None,
        [],
        "",
    ],
)
def test_a_success_with_nothing_in_it_is_no_url_and_no_failure_c38(body: Any) -> None:
    assert fal().read_result(answer(200, body)) == NoUrl()


@pytest.mark.parametrize(
    ("written", "usage"),
    [
        ("8", Usage(units=Decimal(8))),
        ("7.5", Usage(units=Decimal("7.5"))),
        ("0", Usage(units=Decimal(0))),
        ("", None),
        ("-1", None),
        ("NaN", None),
        ("Infinity", None),
        ("1e99", None),
        ("eight", None),
    ],
)
def test_usage_is_an_exact_number_or_unknown(written: str, usage: Usage | None) -> None:
    read = fal().read_result(answer(200, {"video": {"url": "u"}}, x_fal_billable_units=written))
    assert read == Ready(url="u", usage=usage)


def failure(**changes: Any) -> ProviderFailed:
    values: dict[str, Any] = {"detail": "no", "retryable": False}
    return ProviderFailed(**{**values, **changes})


POLICY = "content_policy_violation"


@pytest.mark.parametrize(
    ("status", "body", "units", "expected"),
    [
        (
            422,
            error_list("prompt", POLICY),
            None,
            failure(code="prompt_refused", reason=POLICY, field="prompt"),
        ),
        (
            422,
            error_list("image_url", POLICY),
            "0",
            failure(code="image_refused", reason=POLICY, field="image", charged=Usage(units=Decimal(0))),
        ),
        (
            422,
            error_list("prompt", POLICY),
            "8",
            failure(code="output_withheld", reason=POLICY, field="prompt", charged=Usage(units=Decimal(8))),
        ),
        (422, error_list("video", POLICY), None, failure(code="output_withheld", reason=POLICY)),
        (
            422,
            {"detail": "no", "error_type": POLICY},
            "0",
            failure(code="output_withheld", reason=POLICY, charged=Usage(units=Decimal(0))),
        ),
        (
            422,
            error_list("duration"),
            None,
            failure(code="input_invalid", reason="value_error", field="seconds"),
        ),
        (
            422,
            error_list("other", "no_media_generated"),
            None,
            failure(code="provider_failed", reason="no_media_generated"),
        ),
        (
            400,
            {"detail": "no", "error_type": "bad_request"},
            None,
            failure(code="provider_failed", reason="bad_request"),
        ),
        (422, {"detail": "no"}, None, failure(code="provider_failed", reason="failed")),
    ],
)
def test_the_model_s_own_refusal_as_the_result_c72(
    status: int, body: Any, units: str | None, expected: ProviderFailed
) -> None:
    headers = {} if units is None else {"x_fal_billable_units": units}
    assert fal().read_result(answer(status, body, **headers)) == expected


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (202, {"status": "IN_PROGRESS"}, NotReady()),
        (400, {"detail": "Request is still in progress"}, NotReady()),
        (400, {"detail": "Something odd"}, ReadTrouble(reason="status_400")),
        (400, HTML, ReadTrouble(reason="status_400_not_own")),
        (422, b"", ReadTrouble(reason="status_422_not_own")),
        (404, {"detail": "Not found"}, NotFound()),
        (404, HTML, ReadTrouble(reason="status_404")),
        (410, {"detail": "Gone"}, NotFound()),
        (401, {"detail": "x"}, AccountTrouble(reason="key_refused")),
        (200, HTML, ReadTrouble(reason="not_json")),
        (200, b'{"video": {"ur', ReadTrouble(reason="not_json")),
        (400, {"detail": "x", "error_type": "client_cancelled"}, Cancelled()),
    ],
)
def test_a_result_that_is_not_there(status: int, body: Any, expected: base.ResultReading) -> None:
    assert fal().read_result(answer(status, body)) == expected


@pytest.mark.parametrize(
    ("told", "kind", "retryable"),
    [
        ("true", "no_media_generated", True),
        ("false", "runner_disconnected", False),
        ("", "runner_disconnected", True),
        ("", "request_timeout", True),
        ("", "no_media_generated", False),
    ],
)
def test_a_failure_is_passing_if_the_provider_says_so(told: str, kind: str, retryable: bool) -> None:
    headers = {"x_fal_retryable": told} if told else {}
    body = {"status": "COMPLETED", "error": "no", "error_type": kind}
    read = fal().read_status(answer(200, body, **headers))
    assert isinstance(read, ProviderFailed)
    assert (read.reason, read.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (202, {"status": "CANCELLATION_REQUESTED"}, CancelRequested()),
        (200, {}, CancelRequested()),
        (400, {"status": "ALREADY_COMPLETED"}, AlreadyCompleted()),
        (404, {"status": "NOT_FOUND"}, CancelNotFound()),
        (404, HTML, CancelUnclear(reason="status_404")),
        (200, HTML, CancelUnclear(reason="not_json")),
        (400, {"detail": "x"}, CancelUnclear(reason="status_400")),
        (401, {"detail": "x"}, CancelUnclear(reason="status_401")),
        (503, b"", CancelUnclear(reason="status_503")),
    ],
)
def test_a_cancellation_is_read(status: int, body: Any, expected: base.CancelAnswer) -> None:
    assert fal().read_cancel(answer(status, body)) == expected


@pytest.mark.parametrize("name", ["items", "requests", "data", "results"])
def test_a_page_of_the_list_is_read(name: str) -> None:
    page = {
        name: [
            {
                "request_id": "r1",
                "sent_at": "2026-11-30T12:00:00.500Z",
                "status_code": 200,
                "json_input": {"seed": 5},
            },
            {"request_id": "r2", "status_code": 422, "json_input": '{"seed": 6}', "sent_at": "yesterday"},
            {"request_id": "r3", "json_input": "{broken", "sent_at": "2026-11-30T12:00:00"},
            {"request_id": ""},
            "nonsense",
        ],
        "next_cursor": "c2",
    }
    noon = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    assert fal().read_lookup(answer(200, page)) == LookupPage(
        found=[
            LookupHit(
                upstream_id="r1",
                input={"seed": 5},
                state="succeeded",
                sent_at=noon.replace(microsecond=500000),
            ),
            LookupHit(upstream_id="r2", input={"seed": 6}, state="failed", sent_at=None),
            LookupHit(upstream_id="r3", input=None, state="ended", sent_at=noon),
        ],
        next_cursor="c2",
    )


@pytest.mark.parametrize(
    ("status", "body", "trouble"),
    [
        (200, {}, ReadTrouble(reason="no_list")),
        (200, HTML, ReadTrouble(reason="no_list")),
        (200, {"items": None}, ReadTrouble(reason="no_list")),
        (404, {"detail": "x"}, ReadTrouble(reason="status_404")),
        (500, b"", ReadTrouble(reason="status_500")),
        (401, {"detail": "x"}, AccountTrouble(reason="key_refused")),
    ],
)
def test_a_page_that_cannot_be_read_says_nothing_about_absence(status: int, body: Any, trouble: Any) -> None:
    assert fal().read_lookup(answer(status, body)) == LookupPage(trouble=trouble)


def test_an_empty_page_is_a_page() -> None:
    assert fal().read_lookup(answer(200, {"items": []})) == LookupPage(found=[], next_cursor=None)


def test_a_cut_answer_is_told_from_a_broken_one() -> None:
    cut = HttpResponse(200, {}, b'{"request_id": "r1", "x": "', True)
    assert fal().read_submit(cut) == Unclear(reason="truncated")
    assert fal().read_status(cut) == ReadTrouble(reason="truncated")


def test_provider_text_is_cleaned_capped_and_never_shows_our_key_c68() -> None:
    text = f"bad\x00\x01 key {KEY} \ud800 and secret-half-456 \u202e" + "x" * 5000
    read = fal().read_submit(answer(400, {"detail": text}))
    assert isinstance(read, Rejected)
    assert read.detail.startswith("bad key [redacted] and [redacted] xxx")
    assert len(read.detail) == 2000

    failed = fal().read_status(answer(200, {"status": "COMPLETED", "error": text, "error_type": f"e {KEY}"}))
    assert isinstance(failed, ProviderFailed)
    assert failed.detail.startswith("bad key [redacted] and [redacted] xxx")
    assert failed.reason == "e [redacted]"


def test_a_key_at_the_cut_does_not_leave_half_of_itself() -> None:
    read = fal().read_submit(answer(400, {"detail": "y" * 1990 + KEY}))
    assert isinstance(read, Rejected)
    assert "key-id" not in read.detail


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "request_id",
                    "status",
                    "data",
                    "detail",
                    "error",
                    "error_type",
                    "video",
                    "url",
                    "loc",
                    "msg",
                    "type",
                    "items",
                    "json_input",
                    "queue_position",
                    "next_cursor",
                    "sent_at",
                    "status_code",
                ]
            )
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
BODIES = (
    JSON.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=200)
    | st.sampled_from(
        [b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000, b'"\\ud800"', b"\x00", b"\xef\xbb\xbf{}"]
    )
)
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "date", "x-fal-billable-units", "x-fal-error-type", "x-fal-retryable"]),
    st.text(max_size=30),
)


@settings(max_examples=300, deadline=None, database=None)
@given(status=st.integers(100, 599), body=BODIES, headers=HEADERS, truncated=st.booleans())
def test_no_answer_makes_a_reader_raise_or_leave_its_set(
    status: int, body: bytes, headers: dict[str, str], truncated: bool
) -> None:
    response = HttpResponse(status, headers, body, truncated)
    adapter = fal()
    assert isinstance(adapter.read_submit(response), base.SubmitAnswer)
    assert isinstance(adapter.read_status(response), base.StatusReading)
    assert isinstance(adapter.read_result(response), base.ResultReading)
    assert isinstance(adapter.read_cancel(response), base.CancelAnswer)
    assert isinstance(adapter.read_lookup(response), LookupPage)


@settings(max_examples=200, deadline=None, database=None)
@given(status=st.integers(100, 599).filter(lambda code: not 200 <= code < 300), body=BODIES)
def test_only_a_success_is_ever_accepted_and_only_known_statuses_are_ever_refused(
    status: int, body: bytes
) -> None:
    read = fal().read_submit(HttpResponse(status, {}, body))
    assert not isinstance(read, Accepted)
    if isinstance(read, Rejected):
        assert status in (400, 413, 422)
    if isinstance(read, Throttled):
        assert status == 429
