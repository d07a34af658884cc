"""A Celery broker that is a folder: the doorbell of the embedded default, when no `BROKER_URL` is set.

Kombu has a file-system transport, but it writes messages in place, so that a reader can meet half a message,
and a message it can't read raises inside the worker. This one keeps three promises instead:

- a message appears whole or not at all (written under another name, then renamed);
- whatever lies in the folder, a worker goes on: what is no message is moved to `rejected/` and logged;
- it never holds more than `MAX_WAITING` messages a queue: the broker is a doorbell and the database is the
  truth, so a bell that nobody answers may be dropped, while a full disk may not happen.

One folder a queue, one file a message, and the file's name begins with the time. Removing the file is the
claim: the kernel lets exactly one of several workers succeed. A worker that dies loses the messages it had
claimed and no others; the sweeper finds their rows. Exchanges live in the memory of each process, since
Celery declares a queue before it publishes to it; so there is no shared table that could tear.
"""

import heapq
import itertools
import logging
import os
import re
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)

ALIAS = "folder"
POLLING_SECONDS = (
    0.1  # how long a bell waits at most for an idle worker; four empty folders cost about 50 µs a look
)
LONGEST_WAIT_SECONDS = 0.3  # Celery asks for 2 s, and so would end 2 s late
MAX_WAITING = 10_000  # messages a queue; far above any honest backlog, as every message is one small wake-up
MAX_MESSAGE_BYTES = 1024 * 1024  # a bell carries ids only; anything larger was not written by us
MAX_REJECTED = 1_000  # files kept for a person to look at; more tells nothing new and fills the disk
NAMES_KEPT = (
    500  # names remembered from one look into a folder, so that a long queue is not listed for each message
)
PUTS_BETWEEN_COUNTS = 200  # the bound may be overrun by this many messages for each process that publishes
FULL_SECONDS = 1.0  # how long a full queue drops without counting again
LOG_SECONDS = 10.0  # a fault that repeats ten times a second is logged this often
STALE_SECONDS = 3600.0  # age at which a half-written file has surely lost its writer

# A queue's name becomes a folder's name; these characters can't lead anywhere else.
_QUEUE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_SUFFIX = ".msg"
_UNFINISHED = ".unfinished"
_sequence = itertools.count()


# Note [Threads, not processes, behind this broker]
# With a broker that has no socket to wait on, Celery's pool of processes shares one pipe and its lock. A pool
# process that is killed while it waits there dies with the lock, and the worker never runs anything again.
# Threads live and die with the worker, and whatever supervises it starts a new one. Behind Redis every pool
# process has a pipe of its own, so processes are safe there.


def broker_settings(data_dir: Path) -> dict[str, Any]:
    """Celery settings (lower-case names) that make the folder `data_dir`/broker the broker.

    Remote control is off: it broadcasts, and this broker has no broadcasts.
    """
    TRANSPORT_ALIASES[ALIAS] = f"{__name__}:Transport"
    return {
        "broker_url": f"{ALIAS}://localhost",  # kombu warns when no host is named; the folder is an option
        "broker_transport_options": {
            "folder": str(data_dir / "broker"),
            "polling_interval": POLLING_SECONDS,
            "max_waiting": MAX_WAITING,
        },
        "broker_connection_retry_on_startup": True,
        "worker_enable_remote_control": False,
        "worker_pool": "threads",  # see the note
        "worker_send_task_events": False,
    }


class Channel(virtual.Channel):
    """Puts messages into, and takes them from, one folder a queue."""

    supports_fanout = False

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        options = connection.client.transport_options
        self._folder = Path(options["folder"])
        self._max_waiting = int(options.get("max_waiting", MAX_WAITING))
        self._names: dict[str, deque[str]] = {}
        self._puts_left: dict[str, int] = {}
        self._full_until: dict[str, float] = {}
        self._logged_at: dict[str, float] = {}

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        """Make `message` appear in the queue, whole; drop it if too many wait already.

        No fsync: what a power cut takes from here the sweeper finds in the database.

        Raises:
            ChannelError: the file system refused (disk full, no permission), or `queue` can't name a folder.
        """
        folder = self._queue_folder(queue)
        if not self._has_room(queue):
            self._log("full", "Queue %s holds %s messages; new ones are dropped", queue, self._max_waiting)
            return
        # Wall clock, not the monotonic one, which starts anew at boot while the files stay.
        name = f"{time.time_ns():020d}-{next(_sequence):09d}-{uuid.uuid4().hex}"
        unfinished = folder / (name + _UNFINISHED)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(dumps(message).encode())
            unfinished.rename(folder / (name + _SUFFIX))
        except OSError as error:
            with suppress(OSError):  # what stays behind is removed as stale
                unfinished.unlink()
            raise ChannelError(f"cannot put a message into {folder}: {error}") from error

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """Claim the oldest message.

        Raises:
            Empty: nothing waits, or nothing that could be read.
        """
        folder = self._queue_folder(queue)
        names = self._names.get(queue)
        if not names:
            names = self._names[queue] = self._oldest_names(folder)
        while names:
            message = self._claim(folder, names.popleft())
            if message is not None:
                return message
        raise Empty

    def _claim(self, folder: Path, name: str) -> dict[str, Any] | None:
        """Read, check, then remove the file; None if another worker was faster or the file is no message."""
        path = folder / name
        try:
            with path.open("rb") as file:
                content = file.read(MAX_MESSAGE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._set_aside(path, reason=str(error))
            return None
        try:
            message = self._parse(content)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self._set_aside(path, reason=repr(error))
            return None
        try:
            path.unlink()  # the claim: succeeds for one worker only
        except FileNotFoundError:
            return None
        except OSError as error:
            # Running it without removing it would run it ten times a second for ever.
            self._log("unlink", "Cannot take message %s: %s", path, error)
            return None
        return message

    def _parse(self, content: bytes) -> dict[str, Any]:
        """The message in a file, checked as far as a worker relies on it without looking.

        Raises:
            ValueError, TypeError, KeyError, AttributeError: it is no Celery message.
        """
        if len(content) > MAX_MESSAGE_BYTES:
            raise ValueError(f"longer than {MAX_MESSAGE_BYTES} bytes")
        message: dict[str, Any] = loads(content.decode())
        self.Message(message, channel=self)
        headers = message["headers"]
        if not (isinstance(headers["task"], str) and isinstance(headers["id"], str)):
            raise TypeError("task and id must be text")
        return message

    def _set_aside(self, path: Path, *, reason: str) -> None:
        """Move what is no message out of the way; `path` may be a file or a folder."""
        rejected = self._folder / "rejected"
        try:
            rejected.mkdir(parents=True, exist_ok=True)
            with os.scandir(rejected) as entries:
                is_full = sum(1 for _ in entries) >= MAX_REJECTED
            if is_full and path.is_file():
                path.unlink()
            else:
                # Unique: a second file of the same name must not replace the first.
                path.rename(rejected / f"{path.parent.name}-{uuid.uuid4().hex}-{path.name[:100]}")
        except FileNotFoundError:
            return  # another worker set it aside
        except OSError as error:
            self._log("set aside", "Cannot set aside %s (%s): %s", path, reason, error)
            return
        logger.warning("Set aside %s, which is no message: %s", path, reason)

    def _oldest_names(self, folder: Path) -> deque[str]:
        """Names of waiting messages, oldest first, `NAMES_KEPT` at most."""
        try:
            return deque(heapq.nsmallest(NAMES_KEPT, self._waiting_names(folder)))
        except FileNotFoundError:
            return deque()
        except OSError as error:
            self._log("list", "Cannot list %s: %s", folder, error)
            return deque()

    def _waiting_names(self, folder: Path) -> Iterator[str]:
        """Names of all waiting messages, in no order; removes what a dead writer left half-written.

        Raises:
            OSError: the folder can't be listed.
        """
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX):
                    yield entry.name
                elif entry.name.endswith(_UNFINISHED):
                    _remove_if_stale(entry)

    def _has_room(self, queue: str) -> bool:
        """Whether the queue takes one more; counts only now and then, as counting lists the folder."""
        if time.monotonic() < self._full_until.get(queue, 0.0):
            return False
        if self._puts_left.get(queue, 0) <= 0:
            room = self._max_waiting - self._size(queue)
            if room <= 0:
                self._full_until[queue] = time.monotonic() + FULL_SECONDS
                return False
            self._puts_left[queue] = min(room, PUTS_BETWEEN_COUNTS)
        self._puts_left[queue] -= 1
        return True

    def _size(self, queue: str) -> int:
        """How many messages wait in the queue; 0 if its folder can't be listed."""
        try:
            return sum(1 for _ in self._waiting_names(self._queue_folder(queue)))
        except FileNotFoundError:
            return 0
        except OSError as error:
            self._log("count", "Cannot count queue %s: %s", queue, error)
            return 0

    def _purge(self, queue: str) -> int:
        """Remove all waiting messages; returns how many."""
        folder = self._queue_folder(queue)
        self._names.pop(queue, None)
        purged = 0
        try:
            for name in list(self._waiting_names(folder)):
                try:
                    (folder / name).unlink()
                except FileNotFoundError:
                    continue  # a worker claimed it
                purged += 1
        except FileNotFoundError:
            return purged  # nothing was ever put there
        except OSError as error:
            raise ChannelError(f"cannot purge {folder}: {error}") from error
        return purged

    def _queue_folder(self, queue: str) -> Path:
        if not _QUEUE_NAME.fullmatch(queue):
            raise ChannelError(f"not a name for a queue: {queue!r}")
        return self._folder / "queues" / queue

    def _log(self, subject: str, text: str, *arguments: object) -> None:
        now = time.monotonic()
        if now >= self._logged_at.get(subject, 0.0):
            self._logged_at[subject] = now + LOG_SECONDS
            logger.error(text, *arguments)


def _remove_if_stale(entry: "os.DirEntry[str]") -> None:
    try:
        if time.time() - entry.stat().st_mtime > STALE_SECONDS:
            os.unlink(entry.path)
    except FileNotFoundError:
        return  # its writer finished, or another worker removed it
    except OSError as error:
        logger.warning("Cannot remove the half-written %s: %s", entry.path, error)


class Transport(virtual.Transport):
    """The transport behind `folder://`; its option `folder` names the folder."""

    Channel = Channel
    implements = virtual.Transport.implements.extend(
        asynchronous=False, exchange_type=frozenset(["direct", "topic"])
    )
    # One for the process, so that a queue declared on one connection is known to all.
    global_state = virtual.BrokerState()
    polling_interval = POLLING_SECONDS
    default_port = 0
    driver_type = "filesystem"
    driver_name = "filesystem"

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.state = self.global_state

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Deliver one message, waiting less than asked: a worker notices its own end only between two waits.

        Raises:
            TimeoutError: nothing came.
        """
        super().drain_events(connection, timeout=min(timeout or LONGEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))

    def driver_version(self) -> str:
        """Kombu shows this in its reports."""
        return "1"
