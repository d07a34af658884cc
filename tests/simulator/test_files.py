"""The videos: valid, distinct, by range; and the ways in which a download goes wrong."""

import http.client
import struct
import time

import pytest

from tests.simulator.orders import accepted, read
from tests.simulator_process import Reply, SimulatorProcess


def boxes(content: bytes) -> list[tuple[str, int]]:
    """The outer boxes of an MP4, each with its size; they must fill the file exactly."""
    found, at = [], 0
    while at < len(content):
        size, name = struct.unpack_from(">I4s", content, at)
        assert size >= 8
        found.append((name.decode("ascii"), size))
        at += size
    assert at == len(content)
    return found


def video_of(simulator: SimulatorProcess, body: dict[str, str], **headers: str) -> Reply:
    video = read(simulator, body["response_url"]).json["video"]
    return simulator.request("GET", video["url"], headers=headers)


@pytest.mark.parametrize(
    ("aspect_ratio", "width", "height"), [("16:9", 640, 360), ("9:16", 360, 640), ("1:1", 480, 480)]
)
def test_a_video_is_a_valid_mp4_of_the_ordered_shape_that_plays_while_it_loads(
    simulator: SimulatorProcess, aspect_ratio: str, width: int, height: int
) -> None:
    body = accepted(simulator, aspect_ratio=aspect_ratio)
    reply = video_of(simulator, body)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "video/mp4")
    assert reply.headers["Content-Length"] == str(len(reply.body))
    assert read(simulator, body["response_url"]).json["video"]["file_size"] == len(reply.body)
    found = [name for name, _ in boxes(reply.body)]
    assert found[0] == "ftyp"
    assert found.index("moov") < found.index("mdat")
    assert found[-1] == "free"
    assert reply.body.endswith(body["request_id"].encode())
    # Width and height stand 28 bytes behind the name of a visual sample entry (ISO 14496-12).
    at = reply.body.index(b"avc1", reply.body.index(b"stsd")) + 28
    assert struct.unpack_from(">HH", reply.body, at) == (width, height)
    assert b"avcC" in reply.body
    assert 10_000 < len(reply.body) < 60_000


def test_two_jobs_never_have_the_same_bytes(simulator: SimulatorProcess) -> None:
    first, second = (video_of(simulator, accepted(simulator)).body for _ in range(2))
    assert first != second
    assert len(first) == len(second)


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-7", slice(0, 8)),
        ("bytes=100-", slice(100, None)),
        ("bytes=-10", slice(-10, None)),
        ("bytes=5-999999", slice(5, None)),
    ],
)
def test_a_range_is_that_part(simulator: SimulatorProcess, header: str, part: slice) -> None:
    body = accepted(simulator)
    whole = video_of(simulator, body).body
    reply = video_of(simulator, body, Range=header)
    start, end, _ = part.indices(len(whole))
    assert (reply.status, reply.body) == (206, whole[part])
    assert reply.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(whole)}"


def test_a_range_behind_the_end_is_416_and_nonsense_is_the_whole(simulator: SimulatorProcess) -> None:
    body = accepted(simulator)
    whole = video_of(simulator, body).body
    reply = video_of(simulator, body, Range="bytes=999999-")
    assert (reply.status, reply.headers["Content-Range"]) == (416, f"bytes */{len(whole)}")
    for header in ("bytes=a-b", "bytes=0-1,3-4", "lines=1-2"):
        assert video_of(simulator, body, Range=header).status == 200


def test_only_an_ended_success_has_a_file(simulator: SimulatorProcess) -> None:
    for directive in ("fail", "run_forever", "refused_output"):
        body = accepted(simulator, f"a cat [sim: {directive}]")
        assert simulator.request("GET", f"/files/{body['request_id']}/video.mp4").status == 404
    assert simulator.request("GET", "/files/no-such-id/video.mp4").status == 404


def test_a_link_expires_for_good(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: link_seconds=1]")
    assert video_of(simulator, body).status == 200
    time.sleep(1.1)
    assert video_of(simulator, body).status == 403


def test_a_link_expires_and_a_fresh_one_works(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: link_seconds=1 link_fresh]")
    old = read(simulator, body["response_url"]).json["video"]["url"]
    assert simulator.request("GET", old).status == 200
    time.sleep(1.1)
    assert simulator.request("GET", old).status == 403
    assert video_of(simulator, body).status == 200


def test_a_file_can_be_truncated(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: file=truncated]")
    with pytest.raises(http.client.IncompleteRead) as raised:
        video_of(simulator, body)
    assert raised.value.expected is not None
    assert abs(len(raised.value.partial) - raised.value.expected) <= 1


@pytest.mark.parametrize(("kind", "content_type"), [("html", "text/html"), ("disguised", "video/mp4")])
def test_a_file_can_be_a_page(simulator: SimulatorProcess, kind: str, content_type: str) -> None:
    reply = video_of(simulator, accepted(simulator, f"a cat [sim: file={kind}]"))
    assert (reply.status, reply.headers["Content-Type"], reply.body[:6]) == (200, content_type, b"<html>")


def test_a_file_can_be_empty(simulator: SimulatorProcess) -> None:
    reply = video_of(simulator, accepted(simulator, "a cat [sim: file=empty]"))
    assert (reply.status, reply.body) == (200, b"")


def test_a_file_can_be_larger_than_anybody_wants(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: file=huge]")
    address = f"/files/{body['request_id']}/video.mp4"
    connection = http.client.HTTPConnection("127.0.0.1", simulator.port, timeout=10)
    connection.request("GET", address)
    response = connection.getresponse()
    assert response.headers["Content-Length"] == str(10 * 1024**3)
    assert response.read(8)[4:] == b"ftyp"
    assert len(response.read(3_000_000)) == 3_000_000
    connection.close()
    small = accepted(simulator, "a cat [sim: file=huge huge_bytes=1000000]")
    assert len(video_of(simulator, small).body) == 1_000_000


def test_a_file_can_drip(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: file=drip drip_seconds=0.6]")
    began = time.monotonic()
    reply = video_of(simulator, body)
    assert 0.5 < time.monotonic() - began < 3
    assert boxes(reply.body)[0][0] == "ftyp"


def test_a_file_can_lead_to_another_host_where_a_good_video_waits(simulator: SimulatorProcess) -> None:
    reply = video_of(simulator, accepted(simulator, "a cat [sim: file=redirect]"))
    target = f"http://localhost:{simulator.port}/files/"
    assert (reply.status, reply.headers["Location"][: len(target)]) == (302, target)
    assert boxes(simulator.request("GET", reply.headers["Location"]).body)[0][0] == "ftyp"
    told = accepted(simulator, "a cat [sim: file=redirect redirect_to=http://10.0.0.1/x]")
    assert video_of(simulator, told).headers["Location"] == "http://10.0.0.1/x"


def test_downloads_can_fail_so_often_and_by_a_rule(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: file_503=1 file_reset=1]")
    assert video_of(simulator, body).status == 503
    with pytest.raises(ConnectionResetError):
        video_of(simulator, body)
    assert video_of(simulator, body).status == 200
    simulator.add_fault({"file": "html"}, on="file", times=1)
    assert [video_of(simulator, body).headers["Content-Type"] for _ in range(2)] == ["text/html", "video/mp4"]
