"""Whatever fal answers, no reader raises, and none takes a guess for an acceptance."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from core.http import HttpResponse
from tests.domain.provider_makers import fal
from videos.providers import base
from videos.providers.base import (
    Accepted,
    LookupPage,
    Rejected,
    Throttled,
)

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
