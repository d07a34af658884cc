"""Ending jobs when their time has come, and causing the calls that tell of it."""

import asyncio
import heapq
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import replace

from simulator.directives import Setting
from simulator.jobs import Job, decide
from simulator.journal import Journal, end_job, insert_job, insert_post
from simulator.rulebook import Rulebook
from simulator.webhooks import Call, Sender, call_settings, insert_calls, plan_calls


class Completion:
    """Takes jobs, and ends them. The journal is the truth; memory holds only the running ones' ends."""

    def __init__(self, journal: Journal, rulebook: Rulebook, sender: Sender, *, public_url: str) -> None:
        self._journal = journal
        self._rulebook = rulebook
        self._sender = sender
        self._public_url = public_url
        self._ends: list[tuple[float, str]] = []
        self._changed = asyncio.Event()
        self._ending: dict[str, asyncio.Task[None]] = {}

    async def take(self, job: Job, *, path: str) -> None:
        """Commits the job with its POST, and its end too if that is now; watches it otherwise."""
        now = time.time()
        over = job.ends_at is not None and job.ends_at <= now
        calls: list[Call] = []
        if over or job.directives.get("webhook_early"):
            calls = plan_calls(job, await self._settings(job), public_url=self._public_url, now=now)

        def write(connection: sqlite3.Connection) -> list[tuple[float, int]]:
            insert_post(
                connection,
                at=job.received_at,
                path=path,
                key_digest=job.key_digest,
                verdict="accepted",
                status=200,
                request_id=job.request_id,
            )
            insert_job(connection, job)
            if over:
                end_job(connection, job.request_id, verdict=decide(job), at=now)
            return insert_calls(connection, calls)

        self._sender.schedule(await self._journal.run(write))
        if not over and job.ends_at is not None:
            self._watch(job.ends_at, job.request_id)

    async def finish(self, job: Job, *, cancelled: bool = False) -> None:
        """Ends a job now, once; a second caller waits for the first one's commit."""
        task = self._ending.get(job.request_id)
        if task is None:
            task = asyncio.create_task(self._finish(job, cancelled=cancelled))
            self._ending[job.request_id] = task
            task.add_done_callback(lambda _: self._ending.pop(job.request_id, None))
        await asyncio.shield(task)

    async def run(self) -> None:
        """Ends jobs at their time until cancelled; begins with those an earlier process left running."""
        for job in self._journal.running_jobs():
            if job.ends_at is not None:
                self._watch(job.ends_at, job.request_id)
        while True:
            await self._wait()
            due = []
            while self._ends and self._ends[0][0] <= time.time():
                due.append(heapq.heappop(self._ends)[1])
            jobs = [self._journal.find_job(request_id) for request_id in due]
            running = [job for job in jobs if job is not None and job.ended_at is None]
            await asyncio.gather(*(self.finish(job) for job in running))

    async def _finish(self, job: Job, *, cancelled: bool) -> None:
        now = time.time()
        found = self._journal.find_job(job.request_id)
        if found is None or found.ended_at is not None:
            return
        at = now if cancelled or job.ends_at is None else min(now, job.ends_at)
        verdict = decide(job, cancelled=cancelled)
        ended = _ended(job, at=at, cancelled=cancelled)
        calls: list[Call] = []
        if not job.directives.get("webhook_early"):
            calls = plan_calls(ended, await self._settings(job), public_url=self._public_url, now=now)

        def write(connection: sqlite3.Connection) -> list[tuple[float, int]]:
            if not end_job(connection, job.request_id, verdict=verdict, at=at):
                return []
            return insert_calls(connection, calls)

        self._sender.schedule(await self._journal.run(write))

    async def _settings(self, job: Job) -> Mapping[str, Setting]:
        rule = None
        if job.webhook_url is not None:
            prompt = str(job.input.get("prompt", ""))
            rule = await self._rulebook.take("webhook", endpoint=job.endpoint, prompt=prompt)
        return call_settings(job, rule)

    def _watch(self, ends_at: float, request_id: str) -> None:
        heapq.heappush(self._ends, (ends_at, request_id))
        self._changed.set()

    async def _wait(self) -> None:
        self._changed.clear()
        pause = None if not self._ends else max(0.0, self._ends[0][0] - time.time())
        if pause == 0.0:
            return
        try:
            async with asyncio.timeout(pause):
                await self._changed.wait()
        except TimeoutError:
            return


def _ended(job: Job, *, at: float, cancelled: bool) -> Job:
    return replace(job, ended_at=at, outcome=decide(job, cancelled=cancelled).outcome)
