"""Forks a process for each order, so that a crash costs milliseconds and not the start of an interpreter.

Reads orders from standard input, a line each, and answers each with a line. It has no thread and no
connection of its own, so that a child has only what it opens itself.
"""

import gc
import json
import os
import signal
import sys
import traceback
from typing import Any

import django

CHILD_SECONDS = 120  # a child that takes longer hangs, and says so by dying of SIGALRM


def main() -> None:
    django.setup()
    from core.http.exchange import default_tls
    from tests.crash import effects, seeded_bugs, steps  # noqa: F401  # so that no child has to

    default_tls()
    gc.freeze()  # a child shares these pages as long as nobody writes to them
    print(json.dumps({"ready": True}), flush=True)
    while line := sys.stdin.readline():
        answer = run(json.loads(line))
        print(json.dumps(answer), flush=True)


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Carry an order out in a child; how it ended, and what it told until then."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        be_child(order, writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        _, status = os.waitpid(child, os.WUNTRACED)
        while os.WIFSTOPPED(status):
            print(json.dumps({"sleeps": True}), flush=True)
            sys.stdin.readline()  # the order to go on
            os.kill(child, signal.SIGCONT)
            _, status = os.waitpid(child, os.WUNTRACED)
        lines = [json.loads(line) for line in told]
    return {"status": os.waitstatus_to_exitcode(status), "told": lines}


def be_child(order: dict[str, Any], writing: int) -> None:
    """Run one step under the injector, and leave without tidying up."""
    from tests.crash.effects import Fault, Injector, lay_over
    from tests.crash.seeded_bugs import BUGS
    from tests.crash.steps import step_of

    def report(line: list[Any]) -> None:
        os.write(writing, json.dumps(line).encode() + b"\n")

    gc.disable()  # it ends before there is anything to collect
    signal.alarm(CHILD_SECONDS)
    fault = order["fault"]
    injector = Injector(Fault(**fault) if fault else None, report)
    if order["bug"]:
        BUGS[order["bug"]]()
    try:
        step = step_of(order["step"], order["arguments"])
        lay_over(injector)
        answer = step()
        injector.end()
        report(["answer", answer])
    except BaseException as error:  # the harness judges it, and the process must end here
        report(["raised", type(error).__name__, traceback.format_exc()[-3000:]])
    os._exit(0)


if __name__ == "__main__":
    main()
