"""The durable journal: every POST received and every job taken, committed before a byte of the answer leaves.

One thread writes; what waits at the same moment is committed together, so that a full disk sync is paid once
for many requests. Reads use a second connection on the event loop; each is a lookup by an index.
"""

import asyncio
import json
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from simulator.jobs import Job, Outcome, Verdict, app_of

Result = TypeVar("Result")
Write = Callable[[sqlite3.Connection], Result]

BATCH = 256  # writes that share one commit at most; bounds how long the first of them waits

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    row INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL UNIQUE,
    endpoint TEXT NOT NULL,
    app TEXT NOT NULL,
    key_digest TEXT NOT NULL,
    webhook_url TEXT,
    marker TEXT NOT NULL,
    input TEXT NOT NULL,
    directives TEXT NOT NULL,
    received_at REAL NOT NULL,
    queue_seconds REAL,
    run_seconds REAL,
    cancel_asked_at REAL,
    ended_at REAL,
    outcome TEXT,
    billed INTEGER NOT NULL DEFAULT 0,
    units TEXT NOT NULL DEFAULT '0',
    unit_price TEXT NOT NULL DEFAULT '0',
    cost TEXT NOT NULL DEFAULT '0',
    reads TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX IF NOT EXISTS jobs_ended ON jobs (key_digest, ended_at, row);
CREATE INDEX IF NOT EXISTS jobs_running ON jobs (row) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS jobs_marker ON jobs (marker);
CREATE TABLE IF NOT EXISTS posts (
    row INTEGER PRIMARY KEY,
    received_at REAL NOT NULL,
    path TEXT NOT NULL,
    key_digest TEXT,
    verdict TEXT NOT NULL,
    status INTEGER,
    request_id TEXT
);
CREATE TABLE IF NOT EXISTS deliveries (
    -- Never reused, even after a reset: the sender may still remember when an old row was due.
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL,
    url TEXT NOT NULL,
    body BLOB NOT NULL,
    options TEXT NOT NULL,
    due_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    last_status INTEGER,
    ended_at REAL
);
CREATE INDEX IF NOT EXISTS deliveries_pending ON deliveries (due_at) WHERE ended_at IS NULL;
CREATE TABLE IF NOT EXISTS faults (rule_id INTEGER PRIMARY KEY, rule TEXT NOT NULL, remaining INTEGER);
"""


class Journal:
    """Opens (and makes) the journal; `run` writes, the other methods read."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._waiting: queue.SimpleQueue[tuple[Write[Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        connection = connect(path)
        connection.executescript(SCHEMA)
        connection.close()
        self.read = connect(path)
        self._writer = threading.Thread(target=self._write, name="journal", daemon=True)
        self._writer.start()

    async def run(self, write: Write[Result]) -> Result:
        """Does `write` in a transaction and returns once it is on the disk.

        Raises:
            sqlite3.Error: it could not be written; nothing of it is kept.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.put((write, future))
        # Shielded: a caller that goes away must not take back what is being committed.
        return await asyncio.shield(future)

    def close(self) -> None:
        """Commits what waits and closes."""
        self._waiting.put(None)
        self._writer.join()
        self.read.close()

    def find_job(self, request_id: str) -> Job | None:
        row = self.read.execute("SELECT * FROM jobs WHERE request_id = ?", (request_id,)).fetchone()
        return None if row is None else job_of(row)

    def running_jobs(self) -> Iterator[Job]:
        for row in self.read.execute("SELECT * FROM jobs WHERE ended_at IS NULL ORDER BY row"):
            yield job_of(row)

    def _write(self) -> None:
        connection = connect(self._path)
        stopping = False
        while not stopping:
            batch = []
            item = self._waiting.get()
            while item is not None:
                batch.append(item)
                if len(batch) == BATCH or self._waiting.empty():
                    break
                item = self._waiting.get()
            stopping = item is None
            if batch:
                self._commit(connection, batch)
        connection.close()

    def _commit(
        self, connection: sqlite3.Connection, batch: Sequence[tuple[Write[Any], asyncio.Future[Any]]]
    ) -> None:
        results: list[Any] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            results.extend(write(connection) for write, _ in batch)
            connection.execute("COMMIT")
        except Exception as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if len(batch) > 1:  # one bad write must not take the others with it
                for single in batch:
                    self._commit(connection, [single])
                return
            _settle(batch[0][1], error=error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            _settle(future, result=result)


def connect(path: Path) -> sqlite3.Connection:
    """A connection whose commits survive a kill and a power cut."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def job_of(row: sqlite3.Row) -> Job:
    """The job of a row."""
    return Job(
        request_id=row["request_id"],
        endpoint=row["endpoint"],
        key_digest=row["key_digest"],
        webhook_url=row["webhook_url"],
        marker=row["marker"],
        input=json.loads(row["input"]),
        directives=json.loads(row["directives"]),
        received_at=row["received_at"],
        queue_seconds=row["queue_seconds"],
        run_seconds=row["run_seconds"],
        ended_at=row["ended_at"],
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
    )


def insert_job(connection: sqlite3.Connection, job: Job) -> None:
    """Records a job as taken."""
    connection.execute(
        "INSERT INTO jobs (request_id, endpoint, app, key_digest, webhook_url, marker, input, directives,"
        " received_at, queue_seconds, run_seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            job.request_id,
            job.endpoint,
            app_of(job.endpoint),
            job.key_digest,
            job.webhook_url,
            job.marker,
            json.dumps(dict(job.input)),  # ASCII, so that lone surrogates and NUL can be stored
            json.dumps(job.directives),
            job.received_at,
            job.queue_seconds,
            job.run_seconds,
        ),
    )


def end_job(connection: sqlite3.Connection, request_id: str, *, verdict: Verdict, at: float) -> bool:
    """Records how a job ended; False if it had ended already, and then nothing is changed."""
    changed = connection.execute(
        "UPDATE jobs SET ended_at = ?, outcome = ?, billed = ?, units = ?, unit_price = ?, cost = ?"
        " WHERE request_id = ? AND ended_at IS NULL",
        (
            at,
            verdict.outcome.value,
            int(verdict.billed),
            format(verdict.units, "f"),
            format(verdict.unit_price, "f"),
            format(verdict.cost, "f"),
            request_id,
        ),
    )
    return changed.rowcount == 1


def ask_cancel(connection: sqlite3.Connection, request_id: str, *, at: float) -> None:
    """Records that a cancellation was asked for."""
    connection.execute(
        "UPDATE jobs SET cancel_asked_at = coalesce(cancel_asked_at, ?) WHERE request_id = ?",
        (at, request_id),
    )


def count_read(connection: sqlite3.Connection, request_id: str, *, surface: str) -> int:
    """Counts a read of a job's surface; returns how many came before it."""
    path = f"$.{surface}"
    (before,) = connection.execute(
        "SELECT coalesce(json_extract(reads, ?), 0) FROM jobs WHERE request_id = ?", (path, request_id)
    ).fetchone()
    connection.execute(
        "UPDATE jobs SET reads = json_set(reads, ?, ?) WHERE request_id = ?", (path, before + 1, request_id)
    )
    return int(before)


def insert_post(
    connection: sqlite3.Connection,
    *,
    at: float,
    path: str,
    key_digest: str | None,
    verdict: str,
    status: int | None,
    request_id: str | None = None,
) -> None:
    """Records a POST, whatever became of it."""
    connection.execute(
        "INSERT INTO posts (received_at, path, key_digest, verdict, status, request_id)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (at, path, key_digest, verdict, status, request_id),
    )


def reset(connection: sqlite3.Connection) -> None:
    """Forgets everything."""
    for table in ("jobs", "posts", "deliveries", "faults"):
        connection.execute(f"DELETE FROM {table}")


def summary(connection: sqlite3.Connection) -> dict[str, Any]:
    """What tests compare with: how much was done, billed and asked, and what was done more than once."""
    jobs, billed = connection.execute("SELECT count(*), coalesce(sum(billed), 0) FROM jobs").fetchone()
    (posts,) = connection.execute("SELECT count(*) FROM posts").fetchone()
    markers = connection.execute(
        "SELECT marker, count(*) FROM jobs WHERE marker <> '' GROUP BY marker HAVING count(*) > 1"
    )
    # As bytes: a prompt may hold lone surrogates, which SQLite stores and Python cannot decode.
    prompts = connection.execute(
        "SELECT CAST(json_extract(input, '$.prompt') AS BLOB), count(*) FROM jobs"
        " GROUP BY 1 HAVING count(*) > 1"
    )
    return {
        "jobs": jobs,
        "billed": billed,
        "posts": posts,
        "duplicates_by_marker": {marker: times for marker, times in markers},
        "duplicates_by_prompt": {
            prompt.decode("utf-8", "backslashreplace"): times for prompt, times in prompts
        },
    }


def _settle(future: asyncio.Future[Any], *, result: Any = None, error: Exception | None = None) -> None:
    """Hands a result over to the event loop that waits for it."""

    def hand_over() -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    future.get_loop().call_soon_threadsafe(hand_over)
