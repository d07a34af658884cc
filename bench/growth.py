"""Latency beside a large past and beside none: the cost must follow what is due, not what exists."""

import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psycopg

from bench.figures import Figure, interleaved
from bench.inside import Inside
from bench.installation import Installation, for_libpq
from bench.machine import CannotMeasure, Plan
from bench.seed import LARGE, SMALL, Past, seed

TARGET = 1.3
OPERATIONS = 25  # of one slice
FREE_BYTES = 6 * 2**30  # the large past is 3 GiB, and PostgreSQL's own log of its making comes on top
# name of the figure, function inside the product, what it is called with
MEASURED: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("growth_submit", "submit", {}),
    ("growth_claim", "take_due", {}),
    ("growth_list", "list_page", {"page": "first"}),
    ("growth_list_cursor", "list_page", {"page": "second"}),
    ("growth_list_completed", "list_page", {"page": "first", "group": "completed"}),
    ("growth_list_failed", "list_page", {"page": "first", "group": "failed"}),
)


def measure(plan: Plan) -> list[Figure]:
    _require_space(plan)
    with ExitStack() as opened:
        large, large_owner, large_told = _prepared(opened, plan, "growth_large", LARGE)
        small, small_owner, small_told = _prepared(opened, plan, "growth_small", SMALL)
        figures = []
        for name, function, arguments in MEASURED:
            sides = interleaved(
                partial(_median_ms, large, large_owner, function, arguments),
                partial(_median_ms, small, small_owner, function, arguments),
                plan.rounds * 4,  # of some tenths of a second each
            )
            figures.append(
                Figure(
                    name=name,
                    value=sides.value,
                    reference=sides.reference,
                    unit="ms",
                    at_most=TARGET,
                    note=sides.spread,
                )
            )
        print(f"growth: {large_told}, beside {small_told}", flush=True)
        return figures


def _prepared(opened: ExitStack, plan: Plan, name: str, past: Past) -> tuple[Inside, dict[str, str], str]:
    """A database with that past: the product inside it, the measured owner, and what was made in how long."""
    product: Installation = opened.enter_context(plan.installation(name))
    inside: Inside = opened.enter_context(product.inside())
    [owner] = inside.call("bench.owners:make_owners", count=1)
    with product.connect() as connection:
        return inside, owner, seed(connection, past, owner_id=owner["owner_id"])


def _median_ms(inside: Inside, owner: dict[str, str], function: str, arguments: dict[str, str]) -> float:
    told: float = inside.call(
        f"bench.growth_inside:{function}", owner_id=owner["owner_id"], count=OPERATIONS, **arguments
    )
    return told


def _require_space(plan: Plan) -> None:
    """Only of a server on this machine can we know. Raises: CannotMeasure when its disk is too full."""
    with psycopg.connect(for_libpq(plan.server)) as connection:
        [(folder,)] = connection.execute("SHOW data_directory").fetchall()
    if Path(folder).is_dir() and (free := shutil.disk_usage(folder).free) < FREE_BYTES:
        raise CannotMeasure(
            f"growth needs {FREE_BYTES // 2**30} GiB of disk for its database, and {free // 2**30} are free"
        )
