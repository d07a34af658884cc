"""What goes wrong with reads of a job: the first so many of them, or all; and successes without a video."""

import http.client

import pytest

from tests.simulator.orders import KEY, accepted, read
from tests.simulator_process import SimulatorProcess


def test_each_kind_of_failed_read_comes_as_often_as_told_and_then_the_truth(
    simulator: SimulatorProcess,
) -> None:
    kinds = "status_404=2 status_429=2 status_408=1 status_500=1 status_502=2 status_503=1 status_html=1"
    body = accepted(simulator, f"a cat [sim: {kinds}]")
    replies = [read(simulator, body["status_url"]) for _ in range(12)]
    assert [reply.status for reply in replies] == [404, 404, 429, 429, 408, 500, 502, 502, 503, 200, 200, 200]
    assert [reply.headers["Content-Type"] for reply in replies[6:10]] == [
        "text/html",
        "text/html",
        "application/json",
        "text/html",
    ]
    assert [reply.json["status"] for reply in replies[10:]] == ["COMPLETED", "COMPLETED"]
    assert read(simulator, body["response_url"]).status == 200


def test_reads_can_be_empty_broken_cut_or_unanswered(simulator: SimulatorProcess) -> None:
    kinds = "status_empty=1 status_broken=1 status_reset=1 status_close=1 status_half=1 status_timeout=1"
    body = accepted(simulator, f"a cat [sim: {kinds}]")
    empty, broken = (read(simulator, body["status_url"]) for _ in range(2))
    assert (empty.status, empty.body) == (200, b"")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|Invalid"):
        _ = broken.json
    errors = (
        ConnectionResetError,
        http.client.RemoteDisconnected,
        http.client.IncompleteRead,
        TimeoutError,
    )
    for error in errors:
        with pytest.raises(error) as raised:
            read(simulator, body["status_url"], timeout=0.5)
        assert type(raised.value) is error
    assert read(simulator, body["status_url"]).json["status"] == "COMPLETED"


def test_counted_reads_are_counted_over_a_restart(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: status_500=2]")
    assert read(simulator, body["status_url"]).status == 500
    simulator.restart(kill=True)
    assert [read(simulator, body["status_url"]).status for _ in range(2)] == [500, 200]


def test_a_kind_without_a_number_lasts(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: result_503]")
    assert {read(simulator, body["response_url"]).status for _ in range(5)} == {503}
    assert read(simulator, body["status_url"]).status == 200


def test_a_scripted_fault_meets_one_surface(simulator: SimulatorProcess) -> None:
    body = accepted(simulator)
    simulator.add_fault({"404": True}, on="status", times=1)
    simulator.add_fault({"reset": True}, on="result", times=1)
    assert [read(simulator, body["status_url"]).status for _ in range(2)] == [404, 200]
    with pytest.raises(ConnectionResetError):
        read(simulator, body["response_url"])
    assert read(simulator, body["response_url"]).status == 200


@pytest.mark.parametrize(
    ("directive", "video"),
    [
        ("url=missing", {"content_type": "video/mp4", "file_name": "video.mp4"}),
        ('url=""', {"url": "", "content_type": "video/mp4", "file_name": "video.mp4"}),
        ("url=empty", {"url": "", "content_type": "video/mp4", "file_name": "video.mp4"}),
        ("url=null", {"url": None, "content_type": "video/mp4", "file_name": "video.mp4"}),
        ("url=list", []),
    ],
)
def test_a_success_can_have_nothing_in_it_twice_and_then_a_video(
    simulator: SimulatorProcess, directive: str, video: object
) -> None:
    body = accepted(simulator, f"a cat [sim: {directive} url_reads=2]")
    for _ in range(2):
        reply = read(simulator, body["response_url"])
        found = reply.json["video"]
        if isinstance(found, dict):
            found.pop("file_size")
        assert (reply.status, found) == (200, video)
    assert read(simulator, body["response_url"]).json["video"]["url"].endswith("/video.mp4")
    assert [job["billed"] for job in simulator.jobs()] == [True]


def test_a_success_can_have_nothing_in_it_for_ever(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: url=null]")
    assert {read(simulator, body["response_url"]).json["video"]["url"] for _ in range(4)} == {None}


def test_a_cancel_can_fail_before_it_is_done_or_after(simulator: SimulatorProcess) -> None:
    before = accepted(simulator, "a cat [sim: queue_forever cancel_500=1]")
    assert simulator.request("PUT", before["cancel_url"], key=KEY).status == 500
    assert read(simulator, before["status_url"]).json["status"] == "IN_QUEUE"
    after = accepted(simulator, "a cat [sim: queue_forever cancel_reset=1]")
    with pytest.raises(ConnectionResetError):
        simulator.request("PUT", after["cancel_url"], key=KEY)
    assert [job["outcome"] for job in simulator.jobs()] == [None, "cancelled"]
