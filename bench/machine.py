"""What a run is made on and with, and the means that every bench shares."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import redis

from bench.installation import Installation, for_libpq
from tests.simulator_process import SimulatorProcess

DEFAULT_SERVER = "postgres://postgres@127.0.0.1:5432/postgres"
DEFAULT_BROKER = "redis://127.0.0.1:6379/4"
BELLS = ("dispatch", "polling", "results", "housekeeping", "_kombu.binding*", "unacked*")  # keys in Redis
SETTINGS = (
    *("server_version", "shared_buffers", "fsync", "synchronous_commit", "full_page_writes"),
    *("max_wal_size", "wal_compression", "max_connections"),
)


class CannotMeasure(Exception):
    """Something that the bench needs is missing; the message says what."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a run measures: a slice of each side is `seconds` long, and there are `rounds` of them.

    `tasks`: after how many the memory is looked at.
    """

    seconds: float
    rounds: int
    tasks: int
    folder: Path
    server: str
    broker: str

    def installation(
        self, name: str, *, simulator: SimulatorProcess | None = None, **env: str
    ) -> Installation:
        return Installation(name, self.folder / name, self.server, self.broker, simulator=simulator, env=env)

    def simulator(self, *, instant: bool = True) -> AbstractContextManager[SimulatorProcess]:
        return _running(SimulatorProcess(self.folder / "provider", instant=instant))


@contextmanager
def _running(simulator: SimulatorProcess) -> Iterator[SimulatorProcess]:
    simulator.start()
    try:
        yield simulator
    finally:
        simulator.stop()


def services() -> tuple[str, str]:
    """PostgreSQL and Redis, from the environment or where they usually are.

    Raises: CannotMeasure when one is not there, is another kind, or the Redis database is in use.
    """
    server = os.environ.get("DATABASE_URL") or DEFAULT_SERVER
    broker = os.environ.get("BROKER_URL") or DEFAULT_BROKER
    if not server.startswith(("postgres://", "postgresql://")):
        raise CannotMeasure(f"DATABASE_URL must name a PostgreSQL server, as in {DEFAULT_SERVER}")
    if not broker.startswith("redis://"):
        raise CannotMeasure(f"BROKER_URL must name a Redis, as in {DEFAULT_BROKER}")
    try:
        with psycopg.connect(for_libpq(server), connect_timeout=5):
            pass
    except psycopg.OperationalError as error:
        raise CannotMeasure(f"no PostgreSQL answers at DATABASE_URL ({error})") from error
    try:
        with redis.Redis.from_url(broker) as connection:
            used = connection.dbsize()
    except redis.ConnectionError as error:
        raise CannotMeasure(f"no Redis answers at BROKER_URL ({error})") from error
    if used:
        raise CannotMeasure("the Redis database of BROKER_URL is not empty; name an empty one")
    return server, broker


@contextmanager
def alone(server: str) -> Iterator[None]:
    """Hold the server for this run: two would disturb each other, and drop each other's databases.

    Raises: CannotMeasure when another run holds it.
    """
    address = urlsplit(server)._replace(path="/postgres").geturl()
    with psycopg.connect(for_libpq(address), autocommit=True) as connection:
        [(is_ours,)] = connection.execute(
            "SELECT pg_try_advisory_lock(hashtext('oncereel_bench'))"
        ).fetchall()
        if not is_ours:
            raise CannotMeasure("another run of the bench uses this PostgreSQL")
        yield


def remove_bells(broker: str) -> None:
    """Take away the bells nobody answered, by the names that Celery gives; whatever else is there stays."""
    with redis.Redis.from_url(broker) as connection:
        for pattern in BELLS:
            for key in connection.scan_iter(pattern):
                connection.delete(key)


def describe(plan: Plan) -> str:
    """Machine and settings, in words."""
    with psycopg.connect(for_libpq(plan.server)) as connection:
        told = ", ".join(
            f"{name} {connection.execute(f'SHOW {name}').fetchone()[0]}"  # type: ignore[index]
            for name in SETTINGS
        )
    cores = len(os.sched_getaffinity(0))
    return "\n".join(
        (
            f"Machine: {cores} cores, {_processor()}, {_memory_gib():.1f} GiB, {platform.system()} "
            f"{platform.release()}, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}",
            f"PostgreSQL: {told}",
            f"Web: gunicorn gthread as in Procfile, {os.environ.get('WEB_WORKERS', '2')} workers of "
            f"{os.environ.get('WEB_THREADS', '8')} threads, DEBUG=false, tokens; broker Redis",
            f"Slices of {plan.seconds:g} s, {plan.rounds} pairs after one to warm up; medians",
        )
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
