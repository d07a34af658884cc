"""From submit to completed: web, beat, workers and an instant provider, all on the same machine."""

import time

import redis

from bench import load, processes
from bench.figures import Figure, interleaved
from bench.installation import Installation
from bench.machine import Plan
from bench.submit import CONCURRENCY, OWNERS, new_order

TASKS_PER_SECOND_OF_SLICE = 50  # a slice is a number of tasks, about as many as one worker does in its time
READY_SECONDS = 60.0
LONGEST_SECONDS = 1200.0
LINES = ("web", "worker", "beat")


def measure(plan: Plan) -> list[Figure]:
    tasks = round(TASKS_PER_SECOND_OF_SLICE * plan.seconds)
    with plan.simulator() as simulator, plan.installation("pipeline", simulator=simulator) as product:
        with product.inside() as inside:
            owners = inside.call("bench.owners:make_owners", count=OWNERS)
        start_all(product, plan.broker)
        told = []

        def with_one() -> float:
            began = {name: processes.cpu_seconds(product.group(name)) for name in LINES}
            at_provider = processes.of_process(simulator.process.pid).cpu_seconds  # type: ignore[union-attr]
            seconds = run(product, owners, tasks)
            used = {name: processes.cpu_seconds(product.group(name)) - began[name] for name in LINES}
            used["provider"] = (
                processes.of_process(simulator.process.pid).cpu_seconds - at_provider  # type: ignore[union-attr]
            )
            told.append(", ".join(f"{name} {cpu / tasks * 1000:.1f}" for name, cpu in used.items()))
            return tasks / seconds

        def with_two() -> float:
            product.start("worker", name="second-worker")
            wait_for_workers(plan.broker, 2)
            seconds = run(product, owners, tasks)
            product.stop("second-worker")
            return tasks / seconds

        sides = interleaved(with_two, with_one, plan.rounds)
        product.manage("audit")
        return [
            Figure(
                name="pipeline",
                value=sides.reference,
                reference=None,
                unit="tasks/s",
                note=f"one worker, {tasks} tasks a run; ms of CPU per task: {told[-1]}",
            ),
            Figure(
                name="pipeline_two_workers",
                value=sides.value,
                reference=sides.reference,
                unit="tasks/s",
                note=f"beside one worker; {sides.spread}; all share the same cores",
            ),
        ]


def start_all(product: Installation, broker: str) -> None:
    """Web, one worker, beat; returns when the worker takes messages."""
    for line in LINES:
        product.start(line)
    wait_for_workers(broker, 1)


def wait_for_workers(broker: str, count: int) -> None:
    """Until that many workers wait for messages in this Redis database. Raises: RuntimeError."""
    until = time.monotonic() + READY_SECONDS
    with redis.Redis.from_url(broker) as connection:
        number = str(connection.connection_pool.connection_kwargs.get("db", 0))
        while time.monotonic() < until:
            clients = connection.client_list()
            waiting = [one for one in clients if one["db"] == number and one["cmd"] == "brpop"]
            if len(waiting) >= count:
                return
            time.sleep(0.1)
    raise RuntimeError(f"{count} workers did not become ready")


def run(product: Installation, owners: list[dict[str, str]], tasks: int) -> float:
    """Order that many videos as fast as the web process takes them; seconds from the first to the last end.

    Raises: RuntimeError when one failed or they did not end.
    """
    with product.connect() as connection:

        def finished(state: str) -> int:
            query = "SELECT count(*) FROM videos_videotask WHERE state = %s"
            return connection.execute(query, [state]).fetchone()[0]  # type: ignore[index]

        before, began = finished("completed"), connection.execute("SELECT clock_timestamp()").fetchone()
        done = load.drive(
            product.port,
            lambda: new_order(owners),
            connections=CONCURRENCY,
            seconds=LONGEST_SECONDS,
            limit=tasks,
        )
        done.require_only(201)
        until = time.monotonic() + LONGEST_SECONDS
        while finished("completed") < before + tasks:
            if time.monotonic() > until or finished("failed"):
                raise RuntimeError(f"{finished('completed') - before} of {tasks} tasks were completed")
            time.sleep(0.2)
        [(seconds,)] = connection.execute(
            "SELECT extract(epoch FROM max(finished_at) - %s)::float8 FROM videos_videotask", began
        ).fetchall()
        return float(seconds)
