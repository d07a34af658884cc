"""A PostgreSQL cluster and a Redis of our own, to be killed without harm to anybody else's."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import redis

from tests.chaos.guarded import Guarded, send
from tests.simulator_process import free_port

READY_SECONDS = 30.0  # recovery after a crash, on a busy machine
NOTICE_SECONDS = 2.0  # for PostgreSQL to notice that one of its processes was killed
LOOK_SECONDS = 0.05
CONNECTIONS = 120  # web threads, workers, and as many again that a killed process has left behind
OTHER_BACKENDS = """
SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
ORDER BY pid
"""


class Cluster:
    """Both on free ports of loopback. PostgreSQL refuses to run as root: then it runs as `postgres`."""

    def __init__(self, folder: Path, liveness: int) -> None:
        self.programs = _programs()
        self._data, self._sockets = folder / "postgresql", folder / "sockets"
        for path in (self._data, self._sockets):
            path.mkdir(parents=True)
        if os.geteuid() == 0:
            for path in (self._data, self._sockets):
                shutil.chown(path, "postgres")
        self._database_port, self._broker_port = free_port(), free_port()
        self._as_postgres = (
            "setpriv --reuid=postgres --regid=postgres --clear-groups " if os.geteuid() == 0 else ""
        )
        environment = {"PATH": os.environ.get("PATH", os.defpath)}
        self.postgresql = Guarded(
            "postgresql",
            f"{self._as_postgres}{self.programs}/postgres -D {self._data} -p {self._database_port}"
            f" -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._sockets}"
            f" -c max_connections={CONNECTIONS}",
            folder / "postgresql.log",
            environment,
            liveness,
        )
        self.redis = Guarded(
            "redis",
            f"redis-server --bind 127.0.0.1 --port {self._broker_port} --dir {folder}"
            " --save '' --appendonly no",
            folder / "redis.log",
            environment,
            liveness,
        )

    @property
    def database_url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self._database_port}/postgres"

    @property
    def broker_url(self) -> str:
        return f"redis://127.0.0.1:{self._broker_port}/0"

    def start(self) -> None:
        subprocess.run(
            f"{self._as_postgres}{self.programs}/initdb -D {self._data} --username postgres --auth trust"
            " --encoding UTF8 --locale C.UTF-8",
            shell=True,
            check=True,
            capture_output=True,
        )
        self.start_postgresql()
        self.start_redis()

    def start_postgresql(self) -> None:
        self.postgresql.start()
        self.wait_for_postgresql()

    def stop_postgresql(self) -> None:
        """As `pg_ctl stop -m immediate`: every connection is cut, and nothing is written any more."""
        pid = self.postgresql.pid()
        if pid is not None:
            send(pid, signal.SIGQUIT)
        _wait_until(lambda: not self.postgresql.is_running)
        self.postgresql.bury()

    def start_redis(self) -> None:
        self.redis.start()
        self.wait_for_redis()

    def flush(self) -> None:
        with redis.Redis.from_url(self.broker_url) as broker:
            broker.flushall()

    def kill_backend(self, chance: random.Random) -> bool:
        """SIGKILL a process that serves a connection: PostgreSQL then cuts all of them and recovers.

        Returns when it answers again; False when nobody was connected, or the victim was just leaving.
        """
        self.wait_for_postgresql()
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            pids = [row[0] for row in connection.execute(OTHER_BACKENDS)]
            if not pids or not send(chance.choice(pids), signal.SIGKILL):
                return False
            if not _comes_true(lambda: not _is_open(connection), NOTICE_SECONDS):  # ours goes with all others
                return False
        self.wait_for_postgresql()
        return True

    def wait_for_postgresql(self) -> None:
        def answers() -> bool:
            try:
                with psycopg.connect(self.database_url, connect_timeout=2):
                    return True
            except psycopg.OperationalError:
                return False

        _wait_until(answers)

    def wait_for_redis(self) -> None:
        def answers() -> bool:
            try:
                with redis.Redis.from_url(self.broker_url, socket_timeout=2) as broker:
                    return bool(broker.ping())
            except redis.RedisError:
                return False

        _wait_until(answers)

    def close(self) -> None:
        if self.postgresql.is_running:
            self.stop_postgresql()
        self.redis.bury()


def _programs() -> Path:
    """The folder of `initdb` and `postgres`, of the newest version: Debian does not put it on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    named = found[-1] if found else shutil.which("initdb")
    if named is None:
        raise SystemExit("PostgreSQL's programs are missing: install the package postgresql.")
    return Path(named).parent


def _is_open(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def _wait_until(what: Callable[[], bool]) -> None:
    if not _comes_true(what, READY_SECONDS):
        raise RuntimeError("PostgreSQL or Redis did not do in time what it was asked to")


def _comes_true(what: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_SECONDS)
    return True
