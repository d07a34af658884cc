"""The platform API: what the look-up shows of whom, and the bill, right and wrong."""

import urllib.parse
from typing import Any

import pytest

from tests.simulator.orders import ENDPOINT, KEY, accepted, read
from tests.simulator_process import SimulatorProcess


def look_up(simulator: SimulatorProcess, key: str = KEY, **filters: Any) -> Any:
    query = urllib.parse.urlencode({"endpoint_id": ENDPOINT, **filters}, doseq=True)
    reply = simulator.request("GET", f"/v1/models/requests/by-endpoint?{query}", key=key)
    assert reply.status == 200, reply.body
    return reply.json


def bill(simulator: SimulatorProcess, key: str = KEY, **filters: Any) -> Any:
    query = urllib.parse.urlencode(filters, doseq=True)
    reply = simulator.request("GET", f"/v1/models/billing-events?{query}", key=key)
    assert reply.status == 200, reply.body
    return reply.json


def test_the_look_up_lists_ended_jobs_only_and_echoes_the_input(simulator: SimulatorProcess) -> None:
    accepted(simulator, "a dog [sim: run_forever]")
    body = accepted(simulator, seed=42, duration="4s")
    found = look_up(simulator, expand="payloads")
    assert (found["has_more"], found["next_cursor"]) == (False, None)
    (item,) = found["items"]
    assert (item["request_id"], item["endpoint_id"], item["status_code"]) == (
        body["request_id"],
        ENDPOINT,
        200,
    )
    assert item["json_input"] == {"prompt": "a cat on a roof", "seed": 42, "duration": "4s"}
    assert item["json_output"] == read(simulator, body["response_url"]).json
    assert item["sent_at"].endswith("Z")
    (bare,) = look_up(simulator)["items"]
    assert "json_input" not in bare


def test_a_request_that_is_not_to_be_stored_is_not_echoed(simulator: SimulatorProcess) -> None:
    headers = {"X-Fal-Store-IO": "0"}
    simulator.request("POST", f"/{ENDPOINT}", body={"prompt": "a cat"}, key=KEY, headers=headers)
    (item,) = look_up(simulator, expand="payloads")["items"]
    assert "json_input" not in item


def test_the_look_up_filters_by_endpoint_outcome_id_time_and_key(simulator: SimulatorProcess) -> None:
    good = accepted(simulator)
    bad = accepted(simulator, "a cat [sim: fail]")
    refused = accepted(simulator, "a cat [sim: refused_output]")
    accepted(simulator, endpoint="fal-ai/veo3.1")

    def ids(**filters: Any) -> list[str]:
        return [item["request_id"] for item in look_up(simulator, **filters)["items"]]

    assert ids() == [refused["request_id"], bad["request_id"], good["request_id"]]
    assert ids(status="success") == [good["request_id"]]
    assert ids(status="error") == [bad["request_id"]]
    assert ids(status="user_error") == [refused["request_id"]]
    assert ids(request_id=good["request_id"]) == [good["request_id"]]
    assert len(ids(endpoint_id=f"{ENDPOINT},fal-ai/veo3.1")) == 4
    assert ids(end="2020-01-01T00:00:00Z", start="2019-12-31") == []
    assert ids(key="another:key") == []


def test_the_look_up_is_read_page_by_page(simulator: SimulatorProcess) -> None:
    sent = [accepted(simulator)["request_id"] for _ in range(5)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for more in (True, True, False):
        page = look_up(simulator, limit=2, **cursor)
        seen += [item["request_id"] for item in page["items"]]
        assert page["has_more"] is more
        cursor = {"cursor": page["next_cursor"]}
    assert seen == sent[::-1]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "endpoint_id=a/b&limit=101",
        "endpoint_id=a/b&limit=0",
        "endpoint_id=a/b&start=x",
        "endpoint_id=a/b&cursor=x",
        "endpoint_id=a/b&status=x",
    ],
)
def test_a_query_that_cannot_be_understood_is_400(simulator: SimulatorProcess, query: str) -> None:
    reply = simulator.request("GET", f"/v1/models/requests/by-endpoint?{query}", key=KEY)
    assert reply.status == 400


def test_the_platform_wants_a_key(simulator: SimulatorProcess) -> None:
    for path in ("requests/by-endpoint?endpoint_id=a/b", "billing-events"):
        assert simulator.request("GET", f"/v1/models/{path}").status == 401


def test_the_look_up_can_lag_or_never_show_a_job(simulator: SimulatorProcess) -> None:
    accepted(simulator, "a cat [sim: lookup=never]")
    accepted(simulator, "a cat [sim: lookup_lag=3600]")
    assert look_up(simulator)["items"] == []
    assert simulator.count() == 2


def test_the_look_up_can_fail_by_a_rule(simulator: SimulatorProcess) -> None:
    simulator.add_fault({"502": True}, on="lookup", times=1)
    path = f"/v1/models/requests/by-endpoint?endpoint_id={ENDPOINT}"
    assert [simulator.request("GET", path, key=KEY).status for _ in range(2)] == [502, 200]


def test_the_bill_has_one_exact_line_for_each_billed_job(simulator: SimulatorProcess) -> None:
    accepted(simulator, "a cat [sim: fail]")
    body = accepted(simulator, duration="4s")
    silent = accepted(simulator, endpoint="fal-ai/veo3.1", generate_audio=False)
    events = bill(simulator)["billing_events"]
    assert [event["request_id"] for event in events] == [silent["request_id"], body["request_id"]]
    for event in events:
        assert event.pop("timestamp").endswith("Z")
    assert events[1] == {
        "request_id": body["request_id"],
        "endpoint_id": ENDPOINT,
        "output_units": 4.0,
        "unit_price": 0.15,
        "percent_discount": 0,
        "cost_subtotal": 0.6,
        "cost_discount": 0.0,
        "cost_total": 0.6,
        "cost_estimate_nano_usd": 600_000_000,
    }
    assert (events[0]["unit_price"], events[0]["cost_total"]) == (0.2, 1.6)
    assert bill(simulator, key="another:key")["billing_events"] == []
    assert bill(simulator, request_id=body["request_id"])["billing_events"] == [
        {**events[1], "timestamp": bill(simulator)["billing_events"][1]["timestamp"]}
    ]


def test_the_bill_can_be_wrong_in_every_way(simulator: SimulatorProcess) -> None:
    accepted(simulator, "a cat [sim: bill=missing]")
    accepted(simulator, "a cat [sim: bill_lag=3600]")
    doubled = accepted(simulator, "a cat [sim: bill=double]")
    wrong = accepted(simulator, "a cat [sim: bill_units=9 bill_price=0.5]")
    free = accepted(simulator, "a cat [sim: refused_output billed]")
    events = bill(simulator)["billing_events"]
    assert [(event["request_id"], event["cost_total"]) for event in events] == [
        (free["request_id"], 1.2),
        (wrong["request_id"], 4.5),
        (doubled["request_id"], 1.2),
        (doubled["request_id"], 1.2),
    ]


def test_a_bill_is_90_days_at_most(simulator: SimulatorProcess) -> None:
    query = "start=2026-01-01&end=2026-06-01"
    assert simulator.request("GET", f"/v1/models/billing-events?{query}", key=KEY).status == 400
