"""How fal's status, result, cancellation and list are read: exact tables of status and body."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from core.http import HttpResponse
from tests.domain.provider_makers import HTML, KEY, answer, fal
from videos.providers import base
from videos.providers.base import (
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
    Unclear,
    UnseenWord,
    Usage,
    Waiting,
)


def error_list(field: str, kind: str = "value_error", message: str = "no") -> dict[str, Any]:
    return {"detail": [{"loc": ["body", field], "msg": message, "type": kind}]}


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
