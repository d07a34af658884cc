"""The videos' own addresses: whole or by range, and the ways in which a download goes wrong."""

import asyncio
import time

from aiohttp import web

from simulator.answers import respond, send
from simulator.directives import Setting, number, text
from simulator.faults import HTML_PAGE, NO_FAULT, Answer, error_answer
from simulator.jobs import Job, Outcome, Phase, phase_at
from simulator.media import byte_range, video_of
from simulator.state import SIMULATOR, job_fault

CONTENT_TYPE = "video/mp4"
HUGE_BYTES = 10 * 1024**3
DRIP_SECONDS = 60.0
DRIP_STEP = 0.1
FILLING = bytes(64 * 1024)


def add_routes(app: web.Application) -> None:
    app.router.add_get("/files/{request_id}/video.mp4", read_file)


async def read_file(request: web.Request) -> web.StreamResponse:
    """The video of a job; the address is its own permission, as with fal's."""
    job = request.app[SIMULATOR].journal.find_job(request.match_info["request_id"])
    now = time.time()
    over = job is not None and phase_at(job, now) is Phase.COMPLETED
    if job is None or not over or job.outcome not in (None, Outcome.SUCCESS):
        return respond(error_answer(404, detail="File not found"))
    if "direct" in request.query:  # where a redirect leads: whoever follows it gets a good video
        return respond(_whole(request, video_of(job)))
    fault, rule = await job_fault(request, job, "file")
    if fault != NO_FAULT:
        return await send(request, _whole(request, video_of(job)), fault)
    settings = {**job.directives, **rule}
    ended_at = job.ended_at or job.ends_at or now
    expires_at = ended_at + number(settings.get("link_seconds"), float("inf"))
    if now > number(request.query.get("expires"), expires_at):
        return respond(error_answer(403, detail="The link has expired"))
    return await _misbehave(request, job, settings)


async def _misbehave(request: web.Request, job: Job, settings: dict[str, Setting]) -> web.StreamResponse:
    video = video_of(job)
    match text(settings.get("file")):
        case "html":
            return respond(Answer(200, HTML_PAGE.format("Sign in").encode(), "text/html"))
        case "disguised":  # says it is a video, and is not
            return respond(Answer(200, HTML_PAGE.format("Sign in").encode(), CONTENT_TYPE))
        case "empty":
            return respond(Answer(200, b"", CONTENT_TYPE))
        case "truncated":
            return await _stream(request, video[: len(video) // 2], length=len(video), seconds=0.0)
        case "drip":
            seconds = number(settings.get("drip_seconds"), DRIP_SECONDS)
            return await _stream(request, video, length=len(video), seconds=seconds)
        case "huge":
            length = int(number(settings.get("huge_bytes"), HUGE_BYTES))
            return await _stream_filled(request, video, length=length)
        case "redirect":
            target = text(settings.get("redirect_to")) or _other_host(request)
            return respond(Answer(302, b"", CONTENT_TYPE, {"Location": target}))
        case _:
            return respond(_whole(request, video))


def _whole(request: web.Request, video: bytes) -> Answer:
    """The file or the part of it that was asked for."""
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "public, max-age=3600"}
    try:
        part = byte_range(request.headers.get("Range"), len(video))
    except ValueError:
        return Answer(416, b"", CONTENT_TYPE, {**headers, "Content-Range": f"bytes */{len(video)}"})
    if part is None:
        return Answer(200, video, CONTENT_TYPE, headers)
    first, last = part
    headers["Content-Range"] = f"bytes {first}-{last}/{len(video)}"
    return Answer(206, video[first : last + 1], CONTENT_TYPE, headers)


async def _stream(request: web.Request, content: bytes, *, length: int, seconds: float) -> web.StreamResponse:
    """Sends `content` over that time and then ends the connection, whatever length was announced."""
    response = await _begin(request, length)
    steps = max(1, round(seconds / DRIP_STEP))
    size = max(1, -(-len(content) // steps))
    try:
        for start in range(0, len(content), size):
            if seconds:
                await asyncio.sleep(DRIP_STEP)
            await response.write(content[start : start + size])
    except ConnectionError:
        return response  # the client has had enough
    if len(content) < length and request.transport is not None:
        request.transport.close()
    return response


async def _stream_filled(request: web.Request, content: bytes, *, length: int) -> web.StreamResponse:
    """Sends `content` and then zeros up to the announced length, or until the client has gone."""
    response = await _begin(request, length)
    left = length - len(content)
    try:
        await response.write(content)
        while left > 0:
            await response.write(FILLING[: min(left, len(FILLING))])
            left -= len(FILLING)
    except ConnectionError:
        return response
    return response


async def _begin(request: web.Request, length: int) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE, "Content-Length": str(length)})
    await response.prepare(request)
    return response


def _other_host(request: web.Request) -> str:
    """The same machine under another name: another origin, and still nobody else's."""
    return f"{request.scheme}://localhost:{request.url.port}{request.path}?direct=1"
