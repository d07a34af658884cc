"""Runs one command and makes sure that it does not outlive the runner, however the runner ends.

`python config/process_guard.py LIVENESS_FD COMMAND`, started by `config/runner.py` as the leader of a process
group of its own. The command and all it forks stay in that group. LIVENESS_FD is the reading end of a pipe
whose other end only the runner holds: nobody writes to it, and it ends when the runner does, even by SIGKILL.
Then the guard kills the group. (The runner's own group would not do: a script that started it may be in it.)

Needs nothing but the standard library, so that it starts in some 20 ms.
"""

import os
import select
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(liveness: int, command: str) -> int:
    """Run `command` (a shell's simple command); returns its status, 128 + n if signal n ended it."""
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _only_wake)
    child = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {command}"],
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_guard,  # safe: this process has one thread
    )
    while True:
        status = child.poll()
        if status is not None:
            return status if status >= 0 else 128 - status
        readable, _, _ = select.select([liveness, wake_reader], [], [])
        if liveness in readable and not os.read(liveness, 1):
            os.killpg(os.getpgrp(), signal.SIGKILL)
        if wake_reader in readable:
            arrived = set(os.read(wake_reader, 4096))
            if arrived & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
                child.terminate()


def _only_wake(number: int, frame: object) -> None:
    """The signal's number arrives through the wake-up pipe; a default action would end the guard."""


def _die_with_guard() -> None:
    """On Linux the kernel kills the command if the guard is killed; elsewhere the runner sees to it."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
