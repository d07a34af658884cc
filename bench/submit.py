"""Submissions over HTTP beside pgbench running the statements of a submission, with the same concurrency."""

import json
import random
import re
import shutil
import subprocess
from itertools import count
from pathlib import Path
from uuid import uuid4

from bench import load
from bench.figures import Figure, interleaved
from bench.installation import Installation, for_libpq
from bench.machine import Plan
from bench.script import FIRST_NUMBER, pgbench_scripts
from bench.wire import Recorder, Said
from tests.simulator_process import free_port

CONCURRENCY = 8
OWNERS = 8  # each request is a random one's, on both sides, so that the same account rows are waited for
WARM_UP = 12  # requests before the recording: statements are prepared, tokens are marked as used
PROCESSED = re.compile(r"number of transactions actually processed: (\d+)")
TPS = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
TABLES = (
    *("tombstones_claim", "videos_videotask", "videos_payload", "videos_taskevent"),
    *("billing_charge", "billing_transfer"),
)


def measure(plan: Plan) -> list[Figure]:
    with plan.installation("submit") as product:
        with product.inside() as inside:
            owners = inside.call("bench.owners:make_owners", count=OWNERS)
        scripts = _write_scripts(product, owners)
        product.start("web")
        served: list[load.Load] = []
        rounds = count()

        def submissions() -> float:
            before = _rows(product)
            done = load.drive(
                product.port, lambda: new_order(owners), connections=CONCURRENCY, seconds=plan.seconds
            )
            done.require_only(201)
            _require_growth(product, before, done.statuses[201])
            served.append(done)
            return done.per_second

        def statements() -> float:
            before = _rows(product)
            transactions, per_second = _pgbench(product, scripts, next(rounds), plan.seconds)
            _require_growth(product, before, transactions)
            return per_second

        sides = interleaved(submissions, statements, plan.rounds)
        product.manage("audit")  # what pgbench inserted are orders too: every sum must be right
        own_share = sum(done.cpu_seconds for done in served) / sum(done.seconds for done in served)
        latency = sorted(latency for done in served for latency in done.latencies)
        return [
            Figure(
                name="submit",
                value=sides.value,
                reference=sides.reference,
                unit="1/s",
                at_least=0.25,
                note=(
                    f"{sides.spread}; p50 {latency[len(latency) // 2] * 1000:.0f} ms, "
                    f"p99 {latency[len(latency) * 99 // 100] * 1000:.0f} ms; "
                    f"the load itself used {own_share:.0%} of one core; "
                    f"{sum(len(done.latencies) for done in served)} orders, audit passed"
                ),
            )
        ]


def new_order(owners: list[dict[str, str]]) -> bytes:
    return _post(random.choice(owners)["key"])


def _post(key: str) -> bytes:
    document = {"id": str(uuid4()), "model": "veo3.1", "prompt": "a cat on a roof", "seconds": 8}
    return load.post("/api/videos", key, json.dumps(document).encode())


def _write_scripts(product: Installation, owners: list[dict[str, str]]) -> list[Path]:
    """Record two orders of a web process with one thread, and turn them into a script for each owner."""
    recorded = [(owners[number], said) for number, said in enumerate(record_orders(product, owners[:2]))]
    strings = [{name: value for name, value in owner.items() if name != "key"} for owner in owners]
    known = [({name: owner[name] for name in strings[0]}, said) for owner, said in recorded]
    with product.connect() as connection:
        texts = pgbench_scripts(known, strings, connection)
    paths = [product.data_dir / f"owner-{number}.sql" for number in range(len(owners))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def record_orders(product: Installation, owners: list[dict[str, str]]) -> list[list[Said]]:
    """What the web process says to the database for one order of each owner, once it is warm."""
    port = free_port()
    with Recorder(product.database_url) as recorder:
        product.start(
            "web",
            name="recorded",
            DATABASE_URL=recorder.url,
            PORT=str(port),
            WEB_WORKERS="1",
            WEB_THREADS="1",
        )
        for number in range(WARM_UP):
            _one_order(port, owners[number % len(owners)])
        said = []
        for owner in owners:
            recorder.said.clear()
            _one_order(port, owner)
            said.append(list(recorder.said))
        product.stop("recorded")
    return said


def _one_order(port: int, owner: dict[str, str]) -> None:
    load.drive(port, lambda: _post(owner["key"]), connections=1, seconds=60, limit=1).require_only(201)


def _pgbench(product: Installation, scripts: list[Path], number: int, seconds: float) -> tuple[int, float]:
    """Transactions and their rate. Raises: RuntimeError when one of them failed."""
    first = FIRST_NUMBER + number * 1_000_000  # later ids than in all runs before
    command = [
        *(pgbench_program(), "--no-vacuum", "--protocol=simple", f"--time={round(seconds)}"),
        *(f"--client={CONCURRENCY}", "--jobs=1", f"--define=n={first}"),
        *(f"--file={path}" for path in scripts),
        for_libpq(product.database_url),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    processed, rate = PROCESSED.search(done.stdout), TPS.search(done.stdout)
    if done.returncode != 0 or processed is None or rate is None:
        raise RuntimeError(f"pgbench failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return int(processed[1]), float(rate[1])


def pgbench_program() -> str:
    """Debian keeps it off the path. Raises: RuntimeError when it is nowhere."""
    found = shutil.which("pgbench") or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"), reverse=True)), None
    )
    if found is None:
        raise RuntimeError("pgbench is missing; on Debian it comes with the package postgresql")
    return found


def _rows(product: Installation) -> dict[str, int]:
    with product.connect() as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # type: ignore[index]
            for table in TABLES
        }


def _require_growth(product: Installation, before: dict[str, int], orders: int) -> None:
    """Each order is one row of each table, on both sides. Raises: RuntimeError."""
    grown = {table: rows - before[table] for table, rows in _rows(product).items()}
    if set(grown.values()) != {orders}:
        raise RuntimeError(f"{orders} orders made {grown}")
