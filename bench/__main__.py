"""`python -m bench [NAMES…]`: measures the product beside its references and prints a table."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import growth, machine, memory, pipeline, poll, read, submit, time_spent
from bench.figures import Figure, table, write_json
from bench.machine import CannotMeasure, Plan

BENCHES: dict[str, Callable[[Plan], list[Figure]]] = {
    "submit": submit.measure,
    "read": read.measure,
    "time": time_spent.tell,
    "pipeline": pipeline.measure,
    "poll": poll.measure,
    "growth": growth.measure,
    "memory": memory.measure,
}


def main(arguments: Sequence[str]) -> int:
    """Run the benches named, or all; the status for the shell is 1 when a target is missed."""
    options = _parser().parse_args(arguments)
    try:
        server, broker = machine.services()
        with (
            machine.alone(server),
            tempfile.TemporaryDirectory(prefix="oncereel-bench-") as folder,
        ):
            plan = Plan(
                seconds=options.seconds,
                rounds=options.rounds,
                tasks=options.tasks,
                folder=Path(folder),
                server=server,
                broker=broker,
            )
            figures = _run(plan, options.names or list(BENCHES))
    except CannotMeasure as reason:
        print(f"Cannot measure: {reason}.", file=sys.stderr)
        return 2
    if figures:
        print("", table(figures), sep="\n")
        write_json(figures, options.json)
        print(f"\nwritten to {options.json}")
    return int(any(figure.verdict == "NO" for figure in figures))


def _run(plan: Plan, names: Sequence[str]) -> list[Figure]:
    print(machine.describe(plan), flush=True)
    figures: list[Figure] = []
    try:
        for name in names:
            began = time.monotonic()
            print(f"\n[{name}]", flush=True)
            found = BENCHES[name](plan)
            figures += found
            if found:
                print(table(found))
            print(f"({time.monotonic() - began:.0f} s)", flush=True)
    finally:
        machine.remove_bells(plan.broker)
    return figures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHES], metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--seconds", type=float, default=6, help="of one slice")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of slices")
    parser.add_argument("--tasks", type=int, default=10_000, help="of the memory bench")
    parser.add_argument("--json", type=Path, default=Path("var/bench.json"))
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
