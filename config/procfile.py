"""Becomes one process of `Procfile`: `python -m config.procfile web`, as a container does.

It takes the place of this process, so that signals reach it and not something in between.
"""

import os
import sys
from collections.abc import Sequence

from config.runner import ROOT, CannotRun, read_procfile

MISUSED = 2  # exit status, as shells have it


def command_of(name: str) -> str:
    """The command of a line. Raises: CannotRun, with the names there are."""
    commands = read_procfile((ROOT / "Procfile").read_text())
    if name not in commands:
        raise CannotRun(f"Procfile has no process {name!r}; it has {', '.join(commands)}.")
    return commands[name]


def main(arguments: Sequence[str]) -> int:
    """Become the named process; returns only when there is none."""
    try:
        command = command_of(" ".join(arguments))
    except CannotRun as problem:
        print(problem, file=sys.stderr)
        return MISUSED
    os.execv("/bin/sh", ["/bin/sh", "-c", f"exec {command}"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
