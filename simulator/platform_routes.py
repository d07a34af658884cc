"""fal's platform API: ended requests, the bill, and the keys that sign webhooks."""

import time
from decimal import Decimal
from typing import Any

from aiohttp import web

from simulator import fal
from simulator.answers import respond, send
from simulator.directives import exact, number, text
from simulator.jobs import Job, Outcome
from simulator.journal import job_of
from simulator.media import video_of
from simulator.state import SIMULATOR, UNAUTHORISED, key_digest, refusal, rule_fault

DAY = 86_400.0
DEFAULT_WINDOW = DAY
WINDOW_WITH_ID = 90 * DAY  # the default when request ids are named, and the longest of a bill
LOOKUP_PAGE, LOOKUP_MOST = 50, 100
BILL_PAGE, BILL_MOST = 1_000, 10_000
MOST_NAMES = 50
OUTCOMES = {
    "success": (Outcome.SUCCESS,),
    "error": (Outcome.ERROR,),
    "user_error": (Outcome.USER_ERROR, Outcome.CANCELLED),
}


class InvalidQuery(ValueError):
    """A parameter that cannot be understood; the message names it."""


def add_routes(app: web.Application) -> None:
    app.router.add_get("/v1/models/requests/by-endpoint", list_requests)
    app.router.add_get("/v1/models/billing-events", list_bill)
    app.router.add_get("/.well-known/jwks.json", read_key_set)


async def list_requests(request: web.Request) -> web.StreamResponse:
    """Ended requests of the caller's key by endpoint, the last ended first."""
    digest = key_digest(request)
    if digest is None:
        return respond(UNAUTHORISED)
    endpoints = _names(request, "endpoint_id")
    fault = await rule_fault(request, "lookup", endpoints[0] if endpoints else None)
    try:
        if not endpoints:
            raise InvalidQuery("endpoint_id is required")
        if request.query.get("status") not in (None, *OUTCOMES):
            raise InvalidQuery("status is success, error or user_error")
        limit = _limit(request, LOOKUP_PAGE, LOOKUP_MOST)
        rows, cursor = _page(request, digest, endpoints, limit=limit, billed_only=False)
    except InvalidQuery as error:
        return await send(request, refusal(400, str(error)), fault)
    with_payloads = "payloads" in _names(request, "expand")
    public_url, now = request.app[SIMULATOR].settings.public_url, time.time()
    items = [
        fal.looked_up(job, public_url, len(video_of(job)), with_payloads=with_payloads, now=now)
        for job in rows
        if _is_visible(job, "lookup")
    ]
    body = {"items": items, "next_cursor": cursor, "has_more": cursor is not None}
    return await send(request, fal.json_answer(200, body), fault)


async def list_bill(request: web.Request) -> web.StreamResponse:
    """The lines of the bill of the caller's key, the newest first."""
    digest = key_digest(request)
    if digest is None:
        return respond(UNAUTHORISED)
    endpoints = _names(request, "endpoint_id")
    fault = await rule_fault(request, "lookup", endpoints[0] if endpoints else None)
    try:
        limit = _limit(request, BILL_PAGE, BILL_MOST)
        jobs, cursor = _page(request, digest, endpoints, limit=limit, billed_only=True)
    except InvalidQuery as error:
        return await send(request, refusal(400, str(error)), fault)
    events = [line for job in jobs for line in _bill_lines(request, job)]
    body = {"billing_events": events, "next_cursor": cursor, "has_more": cursor is not None}
    return await send(request, fal.json_answer(200, body), fault)


async def read_key_set(request: web.Request) -> web.StreamResponse:
    """The public key webhooks are signed with."""
    return respond(fal.json_answer(200, request.app[SIMULATOR].signer.key_set()))


def _page(
    request: web.Request, digest: str, endpoints: list[str], *, limit: int, billed_only: bool
) -> tuple[list[Job], str | None]:
    """Ended jobs of a window, newest end first, and the cursor of the next page.

    Raises:
        InvalidQuery: a time, a cursor, or a window wider than the bill's.
    """
    ids = _names(request, "request_id")
    now = time.time()
    end = _time(request, "end", now + 1)
    start = _time(request, "start", end - (WINDOW_WITH_ID if ids else DEFAULT_WINDOW))
    if end - start > WINDOW_WITH_ID + DAY:
        raise InvalidQuery("the window is longer than 90 days")
    conditions = ["key_digest = ?", "ended_at >= ?", "ended_at < ?"]
    values: list[Any] = [digest, start, end]
    for column, names in (("endpoint", endpoints), ("request_id", ids)):
        if names:
            conditions.append(f"{column} IN ({', '.join('?' * len(names))})")
            values += names
    if billed_only:
        conditions.append("billed = 1")
    elif (status := request.query.get("status")) is not None:
        conditions.append(f"outcome IN ({', '.join('?' * len(OUTCOMES[status]))})")
        values += [outcome.value for outcome in OUTCOMES[status]]
    if (written := request.query.get("cursor")) is not None:
        try:
            values += fal.read_cursor(written)
        except (ValueError, TypeError) as error:
            raise InvalidQuery("cursor is not one of ours") from error
        conditions.append("(ended_at, row) < (?, ?)")
    found = (
        request.app[SIMULATOR]
        .journal.read.execute(
            f"SELECT * FROM jobs WHERE {' AND '.join(conditions)} ORDER BY ended_at DESC, row DESC LIMIT ?",
            (*values, limit + 1),
        )
        .fetchall()
    )
    cursor = None
    if len(found) > limit:
        cursor = fal.write_cursor(found[limit - 1]["ended_at"], found[limit - 1]["row"])
    return [job_of(row) for row in found[:limit]], cursor


def _bill_lines(request: web.Request, job: Job) -> list[dict[str, Any]]:
    """The job's lines: one, unless a directive wants the bill wrong (`bill=missing`, `bill=double`, …)."""
    told = text(job.directives.get("bill"))
    if told == "missing" or not _is_visible(job, "bill"):
        return []
    row = (
        request.app[SIMULATOR]
        .journal.read.execute("SELECT units, unit_price FROM jobs WHERE request_id = ?", (job.request_id,))
        .fetchone()
    )
    units, price = Decimal(row["units"]), Decimal(row["unit_price"])
    units = exact(job.directives.get("bill_units"), units)
    price = exact(job.directives.get("bill_price"), price)
    line = fal.bill_line(job, units=units, price=price)
    return [line, line] if told == "double" else [line]


def _is_visible(job: Job, surface: str) -> bool:
    """Whether a look-up or the bill shows the job yet: `lookup=never`, `lookup_lag=5`, `bill_lag=5`."""
    if job.directives.get(surface) in (False, "never"):
        return False
    return time.time() >= (job.ended_at or 0.0) + number(job.directives.get(f"{surface}_lag"), 0.0)


def _names(request: web.Request, parameter: str) -> list[str]:
    """A parameter that may be repeated, hold commas, or both."""
    return [
        name for value in request.query.getall(parameter, []) for name in value.split(",") if name.strip()
    ][:MOST_NAMES]


def _limit(request: web.Request, default: int, most: int) -> int:
    written = request.query.get("limit", str(default))
    if not written.isdigit() or not 1 <= int(written) <= most:
        raise InvalidQuery(f"limit is 1 to {most}")
    return int(written)


def _time(request: web.Request, parameter: str, default: float) -> float:
    written = request.query.get(parameter)
    if written is None:
        return default
    try:
        return fal.read_time(written)
    except ValueError as error:
        raise InvalidQuery(f"{parameter} is an ISO 8601 time") from error
