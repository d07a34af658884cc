"""Fetching a result: allowed hosts at public addresses only, whole or not at all, bounded in size and
time.
"""

import asyncio
import hashlib
import io
import ssl
import time
from pathlib import Path

import pytest

from core.http import AllowedOrigins, Downloaded, DownloadFailed, DownloadRefused, download, sniff_video
from core.http.download import Sink
from tests.domain.loopback import Script, Server, Visit, certificate, serving, unused_port

VIDEO = b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + b"frame" * 40


async def fetch(
    url: str,
    *,
    named: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    sink: Sink | None = None,
    max_bytes: int = 10_000,
    total_seconds: float = 5.0,
    tls: ssl.SSLContext | None = None,
) -> Downloaded:
    return await download(
        url,
        sink=io.BytesIO() if sink is None else sink,
        allowed_origins=AllowedOrigins.of(hosts=hosts, named=named),
        max_bytes=max_bytes,
        read_seconds=2.0,
        total_seconds=total_seconds,
        tls=tls,
    )


def fetch_from(
    script: Script, *, max_bytes: int = 10_000, total_seconds: float = 5.0
) -> tuple[Downloaded | DownloadRefused | DownloadFailed, bytes, Server]:
    """Download from a scripted server that the operator named: outcome, what reached the sink, what was
    seen.
    """

    async def run() -> tuple[Downloaded | DownloadRefused | DownloadFailed, bytes, Server]:
        sink = io.BytesIO()
        async with serving(script) as server:
            try:
                outcome: Downloaded | DownloadRefused | DownloadFailed = await fetch(
                    f"{server.url}/files/1.mp4",
                    named=(f"127.0.0.1:{server.port}",),
                    sink=sink,
                    max_bytes=max_bytes,
                    total_seconds=total_seconds,
                )
            except (DownloadRefused, DownloadFailed) as error:
                outcome = error
            return outcome, sink.getvalue(), server

    return asyncio.run(run())


def refusal(url: str, *, named: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> str:
    """The reason for which an address is refused."""
    with pytest.raises(DownloadRefused) as raised:
        asyncio.run(fetch(url, named=named, hosts=hosts))
    return raised.value.reason


async def serve_video(visit: Visit) -> None:
    await visit.read_request()
    await visit.answer(200, VIDEO, content_type="text/html")


def test_a_named_host_is_fetched_whole_and_judged_by_its_bytes() -> None:
    outcome, written, server = fetch_from(serve_video)

    assert outcome == Downloaded("video/mp4", len(VIDEO), hashlib.sha256(VIDEO).hexdigest(), "text/html")
    assert written == VIDEO
    assert f"Host: 127.0.0.1:{server.port}".encode() in server.received
    assert b"authorization" not in server.received.lower()


def test_loopback_that_nobody_named_is_refused_before_any_connection() -> None:
    async def run() -> tuple[str, int]:
        async with serving(serve_video) as server:
            with pytest.raises(DownloadRefused) as raised:
                await fetch(f"{server.url}/1.mp4", named=(f"127.0.0.1:{server.port + 1}",))
            return raised.value.reason, len(server.visits)

    assert asyncio.run(run()) == ("host_not_allowed", 0)


def test_an_allowed_name_that_leads_to_loopback_is_refused_at_the_address() -> None:
    assert refusal("https://localhost/1.mp4", hosts=("localhost",)) == "address_not_public"


@pytest.mark.parametrize(
    "address",
    [
        "http://0x7f.1:{port}/",
        "http://2130706433:{port}/",
        "http://127.1:{port}/",
        "http://127.0.0.1.:{port}/",
    ],
)
def test_an_odd_spelling_of_a_named_address_is_refused(address: str) -> None:
    async def run() -> tuple[str, int]:
        async with serving(serve_video) as server:
            with pytest.raises(DownloadRefused) as raised:
                await fetch(address.format(port=server.port), named=(f"127.0.0.1:{server.port}",))
            return raised.value.reason, len(server.visits)

    assert asyncio.run(run()) == ("host_not_plain", 0)


def test_a_mapped_spelling_of_a_named_address_is_refused() -> None:
    assert refusal("http://[::ffff:127.0.0.1]:8900/", named=("127.0.0.1:8900",)) == "host_not_allowed"


def test_a_name_is_checked_against_the_certificate_and_sent_as_host(tmp_path: Path) -> None:
    server_tls, client_tls = certificate(tmp_path, "localhost")

    async def run() -> tuple[Downloaded, bytes, int]:
        async with serving(serve_video, tls=server_tls) as server:
            url = f"https://localhost:{server.port}/1.mp4"
            got = await fetch(url, named=(f"localhost:{server.port}",), tls=client_tls)
            return got, server.received, server.port

    got, received, port = asyncio.run(run())
    assert got.size == len(VIDEO)
    assert f"Host: localhost:{port}".encode() in received


def test_a_certificate_of_another_name_is_a_failure_and_nothing_is_asked(tmp_path: Path) -> None:
    server_tls, client_tls = certificate(tmp_path, "other.example")

    async def run() -> tuple[DownloadFailed, bytes]:
        async with serving(serve_video, tls=server_tls) as server:
            with pytest.raises(DownloadFailed) as raised:
                url = f"https://localhost:{server.port}/1.mp4"
                await fetch(url, named=(f"localhost:{server.port}",), tls=client_tls)
            return raised.value, server.received

    error, received = asyncio.run(run())
    assert (error.reason, error.status, received) == ("tls", None, b"")


def redirect_to(location: str) -> Script:
    async def answer(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(302, b"", location=location)

    return answer


def test_a_redirect_to_an_allowed_host_is_followed() -> None:
    async def run() -> tuple[Downloaded, bytes]:
        async with serving(serve_video) as target, serving(redirect_to(f"{target.url}/v?token=1")) as first:
            named = (f"127.0.0.1:{first.port}", f"127.0.0.1:{target.port}")
            return await fetch(first.url, named=named), target.received

    got, received = asyncio.run(run())
    assert got.size == len(VIDEO)
    assert received.startswith(b"GET /v?token=1 HTTP/1.1")


def test_a_redirect_to_another_host_is_refused_and_that_host_is_not_asked() -> None:
    async def run() -> tuple[str, int]:
        async with serving(serve_video) as target, serving(redirect_to(target.url)) as first:
            with pytest.raises(DownloadRefused) as raised:
                await fetch(first.url, named=(f"127.0.0.1:{first.port}",))
            return raised.value.reason, len(target.visits)

    assert asyncio.run(run()) == ("host_not_allowed", 0)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data", "host_not_allowed"),
        ("file:///etc/passwd", "address_not_http"),
        ("http://user@127.0.0.1:1/", "address_with_user"),
        ("http://[::1", "address_not_valid"),
    ],
)
def test_a_redirect_to_a_forbidden_address_is_refused(location: str, reason: str) -> None:
    outcome, written, _ = fetch_from(redirect_to(location))
    assert isinstance(outcome, DownloadRefused)
    assert (outcome.reason, written) == (reason, b"")


def test_a_circle_of_redirects_ends_after_three() -> None:
    outcome, _, server = fetch_from(redirect_to("/again"))
    assert isinstance(outcome, DownloadRefused)
    assert outcome.reason == "too_many_redirects"
    assert len(server.visits) == 4


def test_a_length_beyond_the_cap_is_refused_before_any_byte_is_kept() -> None:
    outcome, written, _ = fetch_from(serve_video, max_bytes=len(VIDEO) - 1)
    assert isinstance(outcome, DownloadRefused)
    assert (outcome.reason, written) == ("too_large", b"")


def test_a_body_without_length_is_cut_off_at_the_cap() -> None:
    async def endless(visit: Visit) -> None:
        await visit.read_request()
        await visit.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await visit.send(b"400\r\n" + b"x" * 1024 + b"\r\n")

    outcome, written, _ = fetch_from(endless, max_bytes=5000)
    assert isinstance(outcome, DownloadRefused)
    assert outcome.reason == "too_large"
    assert len(written) <= 5000


def test_a_body_exactly_at_the_cap_is_taken() -> None:
    outcome, written, _ = fetch_from(serve_video, max_bytes=len(VIDEO))
    assert isinstance(outcome, Downloaded)
    assert written == VIDEO


def test_a_body_shorter_than_its_length_is_a_failure() -> None:
    async def short(visit: Visit) -> None:
        await visit.read_request()
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + VIDEO)

    outcome, _, _ = fetch_from(short)
    assert isinstance(outcome, DownloadFailed)
    assert (outcome.reason, outcome.status) == ("protocol", None)


@pytest.mark.parametrize("status", [204, 206, 403, 404, 410, 429, 500, 503])
def test_any_status_but_200_is_a_failure_that_names_it(status: int) -> None:
    async def answer(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(status, b"" if status == 204 else b"x")

    outcome, written, server = fetch_from(answer)
    assert isinstance(outcome, DownloadFailed)
    assert (outcome.reason, outcome.status, written) == ("status", status, b"")
    assert len(server.visits) == 1


def test_an_empty_body_is_a_failure() -> None:
    async def empty(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(200, b"")

    outcome, _, _ = fetch_from(empty)
    assert isinstance(outcome, DownloadFailed)
    assert outcome.reason == "empty"


def test_a_compressed_body_is_not_taken_for_the_video() -> None:
    async def packed(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(200, b"whatever", content_encoding="gzip")

    outcome, written, _ = fetch_from(packed)
    assert isinstance(outcome, DownloadFailed)
    assert (outcome.reason, written) == ("encoded", b"")


def test_a_page_in_place_of_the_video_is_seen_by_its_bytes() -> None:
    async def page(visit: Visit) -> None:
        await visit.read_request()
        await visit.answer(200, b"<html>expired</html>", content_type="video/mp4")

    outcome, _, _ = fetch_from(page)
    assert isinstance(outcome, Downloaded)
    assert (outcome.content_type, outcome.declared_type) == (None, "video/mp4")


def test_a_server_that_drips_is_held_to_the_total() -> None:
    async def drip(visit: Visit) -> None:
        await visit.read_request()
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        while True:
            await visit.send(b"x")
            await asyncio.sleep(0.02)

    started = time.monotonic()
    outcome, _, _ = fetch_from(drip, total_seconds=0.4)
    assert isinstance(outcome, DownloadFailed)
    assert outcome.reason == "timeout"
    assert 0.35 < time.monotonic() - started < 1.5


def test_nobody_listening_and_an_unknown_name_are_failures_to_be_retried() -> None:
    port = unused_port()
    for url, named, reason in (
        (f"http://127.0.0.1:{port}/", f"127.0.0.1:{port}", "refused"),
        ("https://no-such-host.invalid/", "no-such-host.invalid", "dns"),
    ):
        with pytest.raises(DownloadFailed) as raised:
            asyncio.run(fetch(url, named=(named,)))
        assert (raised.value.reason, raised.value.status) == (reason, None)


def test_trouble_of_our_own_storage_is_not_the_provider_s() -> None:
    class FullDisk:
        def write(self, data: bytes, /) -> object:
            raise OSError(28, "No space left on device")

    async def run() -> None:
        async with serving(serve_video) as server:
            await fetch(server.url, named=(f"127.0.0.1:{server.port}",), sink=FullDisk())

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(run())


def box(brand: bytes) -> bytes:
    return b"\x00\x00\x00\x18ftyp" + brand + b"\x00\x00\x00\x00mp42isom"


WEBM = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm"


@pytest.mark.parametrize(
    ("first_bytes", "kind"),
    [
        (box(b"isom"), "video/mp4"),
        (box(b"mp42"), "video/mp4"),
        (box(b"M4V "), "video/mp4"),
        (box(b"qt  "), "video/quicktime"),
        (WEBM, "video/webm"),
        (WEBM.replace(b"\x84webm", b"\x88matroska"), None),
        (WEBM[:-5], None),
        (box(b"avif"), None),
        (box(b"heic"), None),
        (box(b"M4A "), None),
        (b"\x00\x00\x00\x04ftypisom", None),
        (b"\x7f\xff\xff\xffftypisom", None),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"<html>ftypisom</html>", None),
        (b"", None),
        (b"\x1a\x45\xdf\xa3", None),
    ],
)
def test_a_video_is_told_by_its_first_bytes(first_bytes: bytes, kind: str | None) -> None:
    assert sniff_video(first_bytes) == kind
