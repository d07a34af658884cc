"""A worker, or a web process, that kills itself with SIGKILL at a named point.

The points are laid over the product's functions in this process alone; the product knows nothing of them.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import django

# point → module, name of the function, and whether death comes before or after it has run
POINTS = {
    "submit: claim inserted": ("tombstones.operations", "insert_claim", "after"),
    "submit: charge inserted": ("billing.operations", "charge", "after"),
    "submit: committed": ("core.db", "run_until_known", "after"),
    "send: attempt committed": ("videos.engine.dispatch", "send_once", "before"),
    "send: answer not recorded": ("videos.engine.dispatch", "record_answer", "before"),
    "send: answer half recorded": ("videos.engine.dispatch", "bind", "after"),
    "send: answer recorded": ("videos.engine.dispatch", "record_answer", "after"),
    "poll: reading not recorded": ("videos.engine.polling", "record_readings", "before"),
    "poll: storing begun": ("videos.engine.polling", "record_readings", "after"),
    "refund: money moved, state not": ("billing.operations", "refund", "after"),
    "store: key reserved": ("files.operations", "reserve_key", "after"),
    "store: bytes stored": ("videos.engine.results", "publish", "before"),
    "store: file published, money not settled": ("videos.engine.results", "complete", "before"),
    "store: settled, state not": ("billing.operations", "settle", "after"),
    "store: committed": ("videos.engine.results", "publish", "after"),
    "cancel: money moved, state not": ("billing.operations", "refund", "after"),
    "delete: claim buried, task not gone": ("tombstones.operations", "bury", "after"),
    "delete: committed": ("videos.deletion", "delete_task", "after"),
    "give up: evidence noted": ("videos.engine.unknowns", "note_evidence", "after"),
}


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL cannot be survived")


def lay_point(point: str) -> None:
    module_name, name, when = POINTS[point]
    module = import_module(module_name)
    function: Callable[..., Any] = getattr(module, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            die()
        function(*args, **kwargs)
        die()

    setattr(module, name, run)


def run_step(step: str, arguments: dict[str, Any]) -> None:
    from django.utils import timezone

    from tests import makers
    from videos import deletion, operations

    now = timezone.now()
    if step == "work":
        makers.work_once()
    elif step == "submit":
        operations.submit_video(**arguments, token=None, now=now)
    elif step == "cancel":
        operations.cancel(**arguments, now=now)
    elif step == "delete":
        deletion.delete_task(**arguments, now=now)
    else:
        raise ValueError(step)


def main() -> None:
    order = json.loads(sys.stdin.read())
    django.setup()
    lay_point(order["point"])
    run_step(order["step"], order["arguments"])


if __name__ == "__main__":
    main()
