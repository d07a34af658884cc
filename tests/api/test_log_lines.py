"""What an operator finds in the logs of an order: its ids, and nobody's words."""

import json
from typing import Any

import pytest

from tests import makers
from tests.makers import Owner
from videos import endings

pytestmark = pytest.mark.django_db(transaction=True)
PROMPT = "a heron at dawn, seen by nobody else"


def lines_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Our own lines since the last look."""
    lines = [dict(record.msg) for record in caplog.records if isinstance(record.msg, dict)]
    caplog.clear()
    return lines


def test_an_order_is_traced_from_its_request_to_its_end_without_its_prompt(
    owner: Owner, simulator: Any, caplog: pytest.LogCaptureFixture
) -> None:
    document = makers.order(prompt=PROMPT)
    answer = owner.api.post(
        "/api/videos", document, content_type="application/json", headers={"x-request-id": "request-12345"}
    )
    task_id = str(makers.task_of(owner, document["id"]).pk)
    [ordered] = [line for line in lines_of(caplog) if line["event"] == "video_ordered"]
    assert (answer.status_code, ordered["request_id"], ordered["task_id"], ordered["is_new"]) == (
        201,
        "request-12345",
        task_id,
        True,
    )
    makers.work()
    told = lines_of(caplog)
    changes = [(line["task_id"], line["to_state"]) for line in told if line["event"] == "task_changed"]
    assert changes == [(task_id, "processing"), (task_id, "completed")]
    written = json.dumps([ordered, *told], default=str)
    assert PROMPT not in written and owner.key not in written


def test_a_change_that_was_rolled_back_is_not_told(
    owner: Owner, simulator: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError("the transaction ends here")

    client_id = makers.submit(owner)
    monkeypatch.setattr(endings.deletion, "bury_if_requested", broken)
    with pytest.raises(RuntimeError):
        owner.api.post(f"/api/videos/{client_id}/cancel")
    assert makers.task_of(owner, client_id).state == "submitting"
    assert [line for line in lines_of(caplog) if line["event"] == "task_changed"] == []
