"""Turns what the product said for one request into a script for pgbench, whose every run is a new request.

Two requests of two owners are compared: what is the same in both is kept word for word, ids become
variables, times become the server's, and what belongs to an owner becomes that of the script's owner. So a
change in the product's statements changes the reference by itself.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import psycopg

from bench.wire import Said

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^']*'(?=::timestamp)")
SAVEPOINT = re.compile(r'"s\d+_x\d+"')  # named by Django after the thread, and counted
ORDERED = "7"  # the version of UUIDs that grow with time; rows made together lie together in the index
# A pgbench variable is a number. Of a fixed length, its digits are also those of a hexadecimal number.
FIRST_NUMBER = 10_000_000
HEADER = r"""\set n :n + 1
\set a random(10000000, 99999999)
\set b random(100000000000, 999999999999)
"""


class NotRepeatable(Exception):
    """Two requests said different things, so that neither tells what a request says."""


def pgbench_scripts(
    recorded: Sequence[tuple[dict[str, str], list[Said]]],
    owners: Sequence[dict[str, str]],
    connection: psycopg.Connection,
) -> list[str]:
    """A script for each owner. `recorded`: two requests with their owners.

    Raises: NotRepeatable.
    """
    types = _type_names(connection, [said for _, statements in recorded for said in statements])
    (first_owner, first), (second_owner, second) = [
        (owner, ";\n".join(said.as_text(types) for said in statements) + ";\n")
        for owner, statements in recorded
    ]
    template = _with_variables(first, first_owner, other=second)
    again = _with_variables(second, second_owner, other=first)
    for one, next_one in zip_longest(template.splitlines(), again.splitlines()):
        if one != next_one:
            raise NotRepeatable(f"one request said\n{one}\nand the next\n{next_one}")
    return [HEADER + _of_owner(template, owner) for owner in owners]


def _type_names(connection: psycopg.Connection, statements: list[Said]) -> dict[int, str]:
    oids = sorted({value.oid for said in statements for value in said.values if value.oid})
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT oid::bigint, format_type(oid, NULL) FROM pg_type WHERE oid = ANY(%s::oid[])", [oids]
    ).fetchall()
    return dict(rows)


def _with_variables(text: str, owner: dict[str, str], *, other: str) -> str:
    """The request with the owner's strings, its ids and its times replaced by what stands for them."""
    for name, value in owner.items():
        text = text.replace(value, f"<{name}>")
    names: dict[str, str] = {}
    for found in UUID.finditer(text):
        if found[0] not in other and found[0] not in names:
            # The number in the middle keeps the ids of one request apart.
            place = f"{len(names) + 1:03d}"
            names[found[0]] = (
                f":n-0000-7{place}-8000-:b" if found[1] == ORDERED else f":a-0000-4{place}-8000-:b"
            )
    for value, variable in names.items():
        text = text.replace(value, variable)
    text = SAVEPOINT.sub('"bench"', text)
    return TIME.sub(lambda found: found[0] if found[0] in other else "now()", text)


def _of_owner(template: str, owner: dict[str, str]) -> str:
    for name, value in owner.items():
        template = template.replace(f"<{name}>", value)
    return template
