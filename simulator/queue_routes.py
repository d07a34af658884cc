"""fal's queue: submit, status, result, cancel."""

import asyncio
import time
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from simulator import fal
from simulator.answers import respond, send
from simulator.directives import Directives, read_directives, text
from simulator.faults import Answer, error_answer, read_fault
from simulator.jobs import Job, Outcome, Phase, phase_at, plan_seconds
from simulator.journal import ask_cancel, count_read, insert_post
from simulator.media import video_of
from simulator.state import NOT_FOUND, SIMULATOR, UNAUTHORISED, job_fault, key_digest, refusal

APP = r"/{app:(?:(?:workflows|comfy)/)?[^/]+/[^/]+}"
REQUEST = APP + "/requests/{request_id}"
EARLY_WEBHOOK_LEAD = 2.0  # seconds the submit answer waits when its webhook is to come first


def add_routes(app: web.Application) -> None:
    app.router.add_get(REQUEST + "/status", read_status)
    app.router.add_get(REQUEST, read_result)
    app.router.add_put(REQUEST + "/cancel", cancel)
    app.router.add_post(r"/{endpoint:.+}", submit)


async def submit(request: web.Request) -> web.StreamResponse:
    """Takes a job, or refuses it; what became of the POST is committed before a byte of the answer leaves."""
    simulator = request.app[SIMULATOR]
    endpoint = request.match_info["endpoint"].strip("/")
    digest = key_digest(request)
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge:
        await _record_refusal(request, "refused", 413, digest)
        return respond(error_answer(413))
    if digest is None:
        await _record_refusal(request, "refused", UNAUTHORISED.status, None)
        return respond(UNAUTHORISED)
    model_input, invalid = fal.check_input(endpoint, raw)
    prompt = str(model_input.get("prompt", ""))
    rule = await simulator.rulebook.take("submit", endpoint=endpoint, prompt=prompt)
    directives = {**read_directives(prompt), **(rule or {})}
    fault = read_fault(directives)
    if fault.wait_before:
        await asyncio.sleep(fault.wait_before)
    if not fault.takes_job:
        verdict = "refused" if fault.status is not None else "dropped"
        await _record_refusal(request, verdict, fault.status, digest)
        return await send(request, error_answer(503), fault)
    if invalid is None and len(endpoint.split("/")) < 2:
        invalid = refusal(404, "Application not found")
    if invalid is not None:
        await _record_refusal(request, "refused", invalid.status, digest)
        return respond(invalid)
    job = _new_job(request, endpoint, digest, model_input, directives)
    await simulator.completion.take(job, path=request.path)
    if directives.get("webhook_early") and not fault.wait:
        fault = replace(fault, wait=EARLY_WEBHOOK_LEAD)
    return await send(request, fal.accepted(job, simulator.settings.public_url, job.received_at), fault)


async def read_status(request: web.Request) -> web.StreamResponse:
    """Where a request is."""
    job = _find(request)
    if isinstance(job, Answer):
        return respond(job)
    fault, _ = await job_fault(request, job, "status")
    now = time.time()
    await _settle(request, job, now)
    with_logs = request.query.get("logs", "").lower() in ("1", "true")
    public_url = request.app[SIMULATOR].settings.public_url
    return await send(request, fal.status_answer(job, public_url, now, with_logs=with_logs), fault)


async def read_result(request: web.Request) -> web.StreamResponse:
    """What the model made, or the model's own error."""
    simulator = request.app[SIMULATOR]
    job = _find(request)
    if isinstance(job, Answer):
        return respond(job)
    fault, rule = await job_fault(request, job, "result")
    now = time.time()
    if phase_at(job, now) is not Phase.COMPLETED:
        return await send(request, refusal(400, "Request is still in progress"), fault)
    await _settle(request, job, now)
    job = replace(job, directives={**job.directives, **rule})
    reads = 0
    if "url_reads" in job.directives:
        reads = await simulator.journal.run(
            lambda connection: count_read(connection, job.request_id, surface="url")
        )
    answer = fal.result_answer(job, simulator.settings.public_url, len(video_of(job)), reads=reads, now=now)
    return await send(request, answer, fault)


async def cancel(request: web.Request) -> web.StreamResponse:
    """Removes a waiting job; a running one is only asked, and most models do not listen."""
    simulator = request.app[SIMULATOR]
    job = _find(request)
    if isinstance(job, Answer):
        return respond(job)
    fault, rule = await job_fault(request, job, "cancel")
    if not fault.takes_job:
        return await send(request, error_answer(503), fault)
    now = time.time()
    phase = phase_at(job, now)
    if phase is Phase.COMPLETED:
        return await send(request, fal.json_answer(400, {"status": "ALREADY_COMPLETED"}), fault)
    await simulator.journal.run(lambda connection: ask_cancel(connection, job.request_id, at=now))
    word = text(rule.get("cancel")) or text(job.directives.get("cancel"))
    if phase is Phase.IN_QUEUE or word == "obey":
        await simulator.completion.finish(job, cancelled=True)
    return await send(request, fal.json_answer(202, {"status": "CANCELLATION_REQUESTED"}), fault)


def _find(request: web.Request) -> Job | Answer:
    """The job of this address that belongs to the caller's key; else the refusal."""
    digest = key_digest(request)
    if digest is None:
        return UNAUTHORISED
    job = request.app[SIMULATOR].journal.find_job(request.match_info["request_id"])
    if job is None or job.key_digest != digest or job.app != request.match_info["app"]:
        return NOT_FOUND
    if job.outcome is Outcome.CANCELLED and job.directives.get("cancel") == "forget":
        return NOT_FOUND
    return job


async def _settle(request: web.Request, job: Job, now: float) -> None:
    """Commits an end whose time has come before anybody is told of it."""
    if job.ended_at is None and phase_at(job, now) is Phase.COMPLETED:
        await request.app[SIMULATOR].completion.finish(job)


async def _record_refusal(request: web.Request, verdict: str, status: int | None, digest: str | None) -> None:
    now = time.time()
    await request.app[SIMULATOR].journal.run(
        lambda connection: insert_post(
            connection, at=now, path=request.path, key_digest=digest, verdict=verdict, status=status
        )
    )


def _new_job(
    request: web.Request,
    endpoint: str,
    digest: str,
    model_input: Mapping[str, Any],
    directives: Directives,
) -> Job:
    settings = request.app[SIMULATOR].settings
    queue_seconds, run_seconds = plan_seconds(directives, job_seconds=settings.job_seconds)
    if request.headers.get("X-Fal-Store-IO") == "0":
        directives = {**directives, "store_io": False}
    webhook_url = request.query.get("fal_webhook") or None
    return Job(
        request_id=str(uuid.uuid4()),
        endpoint=endpoint,
        key_digest=digest,
        webhook_url=webhook_url,
        marker=_marker(directives, webhook_url, model_input),
        input=model_input,
        directives=directives,
        received_at=time.time(),
        queue_seconds=queue_seconds,
        run_seconds=run_seconds,
    )


def _marker(directives: Directives, webhook_url: str | None, model_input: Mapping[str, Any]) -> str:
    """What the caller marked the job with: told, the end of its webhook address, or its seed; else empty."""
    told = text(directives.get("marker"))
    if told is None and webhook_url is not None:
        told = urllib.parse.urlsplit(webhook_url).path.rstrip("/").rpartition("/")[2]
    if not told and model_input.get("seed") is not None:
        told = str(model_input["seed"])
    return (told or "").encode("utf-8", "backslashreplace").decode()
