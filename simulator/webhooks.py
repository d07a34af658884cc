"""Webhooks: which calls a job causes (pure), and the sender that makes them, durably and with retries."""

import asyncio
import heapq
import json
import logging
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from simulator.directives import Setting, integer, number, surface_settings, text
from simulator.fal import webhook_body
from simulator.jobs import Job
from simulator.journal import Journal
from simulator.media import video_of
from simulator.signing import Signer, webhook_message

logger = logging.getLogger(__name__)

USER_ID = "simulator"
RETRIES = 10  # as fal documents; its two hours are scaled down so that tests can wait for them
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
COPY_INTERVAL = 0.2  # seconds between copies that are not concurrent
CONCURRENCY = 64
TIMEOUT = aiohttp.ClientTimeout(total=15)  # fal's own limit


@dataclass(frozen=True, slots=True)
class Call:
    """One call to be made at `due_at` (Unix seconds)."""

    request_id: str
    url: str
    body: bytes
    due_at: float
    options: Mapping[str, Setting]


def plan_calls(job: Job, settings: Mapping[str, Setting], *, public_url: str, now: float) -> list[Call]:
    """The calls of a job; `settings` are those of the webhook surface, without its name."""
    if job.webhook_url is None or settings.get("none") or job.directives.get("webhook") in (False, "none"):
        return []
    said: list[str | None] = list(filter(None, (text(settings.get("statuses")) or "").split("|"))) or [None]
    copies = max(1, integer(settings.get("copies")) or 1)
    interval = 0.0 if settings.get("concurrent") else number(settings.get("interval"), COPY_INTERVAL)
    start = now + number(settings.get("delay"), 0.0)
    options = {name: settings[name] for name in ("signature", "timestamp") if name in settings}
    size = len(video_of(job))
    return [
        Call(
            request_id=job.request_id,
            url=job.webhook_url,
            body=webhook_body(job, public_url, size, now=now, status=status),
            due_at=start + interval * turn,
            options=options,
        )
        for turn, status in enumerate(said * copies)
    ]


def call_settings(job: Job, rule: Mapping[str, Setting] | None) -> dict[str, Setting]:
    """The job's own webhook settings under those of a scripted fault."""
    return {**surface_settings(job.directives, "webhook"), **(rule or {})}


def pause_after(attempts: int) -> float:
    """Seconds to wait after that many failed attempts."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempts - 1)))


def signed_headers(
    signer: Signer, *, request_id: str, body: bytes, options: Mapping[str, Setting], now: float
) -> dict[str, str]:
    """The headers of a call; by its options badly signed, unsigned, or of another time."""
    timestamp = str(int(now + number(options.get("timestamp"), 0.0)))
    message = webhook_message(request_id=request_id, user_id=USER_ID, timestamp=timestamp, body=body)
    headers = {
        "Content-Type": "application/json",
        "X-Fal-Webhook-Request-Id": request_id,
        "X-Fal-Webhook-User-Id": USER_ID,
        "X-Fal-Webhook-Timestamp": timestamp,
        "X-Fal-Webhook-Signature": signer.sign(message),
    }
    fault = options.get("signature")
    if fault == "missing":
        del headers["X-Fal-Webhook-Signature"]
    elif fault == "bad":
        headers["X-Fal-Webhook-Signature"] = signer.sign(message + b"\n")
    elif fault == "garbage":
        headers["X-Fal-Webhook-Signature"] = "not hexadecimal"
    return headers


def insert_calls(connection: sqlite3.Connection, calls: list[Call]) -> list[tuple[float, int]]:
    """Records calls to be made; returns when each is due, and its row."""
    due = []
    for call in calls:
        cursor = connection.execute(
            "INSERT INTO deliveries (request_id, url, body, options, due_at) VALUES (?, ?, ?, ?, ?)",
            (call.request_id, call.url, call.body, json.dumps(dict(call.options)), call.due_at),
        )
        due.append((call.due_at, cursor.lastrowid or 0))
    return due


class Sender:
    """Makes the calls that are due. The table is the truth; memory holds only the pending ones' times."""

    def __init__(self, journal: Journal, signer: Signer) -> None:
        self._journal = journal
        self._signer = signer
        self._due: list[tuple[float, int]] = []
        self._changed = asyncio.Event()
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._calls: set[asyncio.Task[None]] = set()

    def schedule(self, due: list[tuple[float, int]]) -> None:
        """Takes recorded calls over."""
        for item in due:
            heapq.heappush(self._due, item)
        self._changed.set()

    async def run(self) -> None:
        """Makes calls until cancelled; begins with those an earlier process left."""
        pending = self._journal.read.execute("SELECT due_at, row FROM deliveries WHERE ended_at IS NULL")
        self.schedule([(due_at, row) for due_at, row in pending])
        # No proxies and no redirects: a call goes where it was ordered to, or fails.
        async with aiohttp.ClientSession(timeout=TIMEOUT, trust_env=False) as session:
            try:
                while True:
                    await self._wait()
                    while self._due and self._due[0][0] <= time.time():
                        _, row = heapq.heappop(self._due)
                        await self._slots.acquire()
                        call = asyncio.create_task(self._attempt(session, row))
                        self._calls.add(call)
                        call.add_done_callback(self._ended)
            finally:
                for call in tuple(self._calls):
                    call.cancel()
                await asyncio.gather(*self._calls, return_exceptions=True)

    async def _wait(self) -> None:
        self._changed.clear()
        pause = None if not self._due else max(0.0, self._due[0][0] - time.time())
        if pause == 0.0:
            return
        try:
            async with asyncio.timeout(pause):
                await self._changed.wait()
        except TimeoutError:
            return

    def _ended(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._slots.release()
        if not call.cancelled() and (error := call.exception()) is not None:
            logger.error("a webhook call was given up: %r", error)

    async def _attempt(self, session: aiohttp.ClientSession, row: int) -> None:
        found = self._journal.read.execute(
            "SELECT * FROM deliveries WHERE row = ? AND ended_at IS NULL", (row,)
        ).fetchone()
        if found is None:  # forgotten by a reset
            return
        body = bytes(found["body"])
        headers = signed_headers(
            self._signer,
            request_id=found["request_id"],
            body=body,
            options=json.loads(found["options"]),
            now=time.time(),
        )
        status = await _post(session, found["url"], body, headers)
        attempts = found["attempts"] + 1
        delivered = status is not None and 200 <= status < 300
        now = time.time()
        over = delivered or attempts > RETRIES
        due_at = now + pause_after(attempts)
        await self._journal.run(
            lambda connection: (
                connection.execute(
                    "UPDATE deliveries SET attempts = ?, last_status = ?, due_at = ?, ended_at = ?"
                    " WHERE row = ?",
                    (attempts, status, due_at, now if over else None, row),
                ).rowcount
            )
        )
        if not over:
            self.schedule([(due_at, row)])


async def _post(session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]) -> int | None:
    """The status of the answer, or None when there was none."""
    try:
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            return response.status
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        logger.info("webhook not delivered: %s", error)
        return None
