"""The doorbell: tells a worker that something is due, and never holds up or fails a request.

Ids only. A lost bell costs time, since the schedule finds every due row by itself.
"""

import atexit
import logging
import os
import queue
import threading
import time
from typing import Any

from celery import current_app

from core import db

log = logging.getLogger(__name__)

WAITING_BELLS = 1000  # more than that and the schedule is quicker anyway
SILENT_SECONDS = 5.0  # after a failed publish, how long bells are skipped
LAST_BELLS_SECONDS = 0.5  # how long a process that ends waits for its bells
# After a bell the next one of its kind is held back this long, and all commits in between share it: a worker
# takes everything that is due, and publishing costs a web process as much as a quarter of an order.
GATHER_SECONDS = 0.25
# Note [Bells do not expire]
# A bell that is old still finds what is due. One that expired would be thrown away unread, at about the cost
# of looking; and behind a backlog of those the schedule's own messages expire too, so that nothing is sent.

Bell = tuple[str, tuple[tuple[str, Any], ...]]  # a task's name and its ids


class Doorbell:
    """One daemon thread per process publishes; callers only put a name on a bounded queue.

    Celery's publish to a hung Redis takes far longer than its own time limits say, so no request may wait
    for it.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[Bell] = queue.Queue(WAITING_BELLS)
        self._waiting: set[Bell] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._silent_until = 0.0

    def ring(self, task: str, ids: dict[str, Any]) -> None:
        if time.monotonic() < self._silent_until:
            return
        self._start_thread()
        bell = (task, tuple(sorted(ids.items())))
        with self._lock:
            if bell in self._waiting:
                return  # it will be published after this commit, and so tells of it too
            try:
                self._queue.put_nowait(bell)
                self._waiting.add(bell)
            except queue.Full:
                log.warning("doorbell_full", extra={"task": task})

    def drain(self, seconds: float = LAST_BELLS_SECONDS) -> bool:
        """Wait until all bells are published or `seconds` are over; True when none is left."""
        until = time.monotonic() + seconds
        while self._queue.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.005)
        return not self._queue.unfinished_tasks

    def _start_thread(self) -> None:
        if self._thread is not None and self._pid == os.getpid():
            return
        with self._lock:
            if self._thread is None or self._pid != os.getpid():  # a fork takes the object, not the thread
                self._queue = queue.Queue(WAITING_BELLS)
                self._waiting = set()
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._publish, name="doorbell", daemon=True)
                self._thread.start()
                atexit.register(self.drain)

    def _publish(self) -> None:
        rung_at: dict[Bell, float] = {}
        while True:
            bell = self._queue.get()
            task, ids = bell
            time.sleep(max(0.0, rung_at.get(bell, 0.0) + GATHER_SECONDS - time.monotonic()))
            if len(rung_at) > WAITING_BELLS:  # bells with ids never come again
                rung_at.clear()
            rung_at[bell] = time.monotonic()
            with self._lock:
                self._waiting.discard(bell)  # before it is published: a later commit needs a bell of its own
            try:
                if time.monotonic() >= self._silent_until:
                    current_app.send_task(task, kwargs=dict(ids), retry=False)
            except Exception as failure:  # any trouble of any broker means the same: skip the bell
                self._silent_until = time.monotonic() + SILENT_SECONDS
                log.warning("doorbell_silent", extra={"task": task, "error": str(failure)[:200]})
            finally:
                self._queue.task_done()


doorbell = Doorbell()


def nudge(task: str, **ids: Any) -> None:
    """After the surrounding transaction commits, tell a worker to run `task` soon."""
    db.after_commit(lambda: doorbell.ring(task, ids))
