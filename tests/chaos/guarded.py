"""One command under the guard of `make run`, so that nothing of it outlives the program that started it."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from config.runner import GUARD, ROOT, kill_group


@dataclass
class Guarded:
    """A process that may be ended and started again; its output is added to `log`.

    `liveness` is the reading end of a pipe that ends with the program that runs all this.
    """

    name: str
    command: str
    log: Path
    environment: Mapping[str, str]
    liveness: int
    _guard: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(self.liveness), self.command],
                cwd=ROOT,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self.liveness,),
                process_group=0,
            )

    @property
    def is_running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    def pid(self) -> int | None:
        """The command itself; None while it is being started, or dead."""
        if not self.is_running or self._guard is None:
            return None
        return next(iter(children_of(self._guard.pid)), None)

    def children(self) -> list[int]:
        """What the command has forked: gunicorn's workers, Celery's pool, backends of PostgreSQL."""
        pid = self.pid()
        return [] if pid is None else children_of(pid)

    def everything(self) -> list[int]:
        """The command and its children."""
        pid = self.pid()
        return [] if pid is None else [pid, *children_of(pid)]

    def kill(self) -> None:
        """SIGKILL to the command and all it has forked, at one moment."""
        if self._guard is not None:
            kill_group(self._guard.pid)

    def bury(self) -> None:
        """End what is left of it, as a process manager does before it starts a service again."""
        if self._guard is not None:
            kill_group(self._guard.pid)
            self._guard.wait()


def send(pid: int, number: signal.Signals) -> bool:
    """Signal a process; False when it is gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def children_of(parent: int) -> list[int]:
    """The living children of a process, oldest first."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(entry)) and stat[1] == str(parent) and stat[0] != "Z":
            found.append(int(entry.name))
    return sorted(found)


def resident_bytes(pids: list[int]) -> int:
    """Memory that these processes hold; pages they share count for each of them."""
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
    return pages * os.sysconf("SC_PAGE_SIZE")


def _stat(entry: Path) -> list[str] | None:
    """State and parent, the fields after the name in brackets; None when the process is gone."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
