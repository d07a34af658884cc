"""Runs functions inside the product: a child process with the product's settings, asked line by line.

The bench itself loads no Django, so that one run can look at several databases.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

ROOT = Path(__file__).resolve().parent.parent


class Inside:
    """`with Inside(environment) as inside: inside.call("bench.owners:make_owners", count=8)`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.inside"],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, function: str, /, **arguments: Any) -> Any:
        """What `module:function` returns, through JSON. Raises: RuntimeError when the child has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([function, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{function} broke; its traceback is above (status {self._process.wait()})")
        return json.loads(line)

    def close(self) -> None:
        """End the child by ending its input."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve(questions: IO[str], answers: IO[str]) -> None:
    """Answer calls until the input ends. An exception ends the process, with its traceback."""
    for line in questions:
        function, arguments = json.loads(line)
        module, _, name = function.partition(":")
        answer = getattr(import_module(module), name)(**arguments)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    import django

    django.setup()
    serve(sys.stdin, sys.stdout)
