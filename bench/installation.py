"""The product as in production, on a database of its own: `DEBUG=false`, the lines of `Procfile`."""

import contextlib
import http.client
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.inside import Inside
from config.runner import GUARD, kill_group, product_environment, read_procfile
from tests.simulator_process import SimulatorProcess, free_port

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "oncereel_bench_"
START_SECONDS = 60.0  # interpreters that import Django, on a busy machine
STOP_SECONDS = 30.0


@dataclass
class Installation:
    """Makes its database when entered and drops it at the end; nothing runs until it is started."""

    name: str
    data_dir: Path
    server: str  # address of a PostgreSQL server
    broker: str
    simulator: SimulatorProcess | None = field(default=None, kw_only=True)
    env: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    port: int = field(default_factory=free_port, kw_only=True)
    _guards: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False, repr=False)

    def __enter__(self) -> Self:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.database = PREFIX + self.name
        self._liveness, self._alive = os.pipe()
        self._secret = secrets.token_urlsafe(64)
        self._on_server(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)"))  # of a run that was killed
        self._on_server(sql.SQL("CREATE DATABASE {}"))
        self.manage("migrate", "--noinput", "--verbosity", "0")
        self.manage("load_prices")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.logs(), file=sys.stderr)
        for name in list(self._guards):
            self.stop(name)
        os.close(self._alive)
        os.close(self._liveness)
        self._on_server(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)"))

    @property
    def database_url(self) -> str:
        return urlsplit(self.server)._replace(path=f"/{self.database}").geturl()

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(for_libpq(self.database_url), autocommit=True)

    def environment(self, **changes: str) -> dict[str, str]:
        """What the product's processes are started with."""
        kept = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LOG_LEVEL", "LD_LIBRARY_PATH")
        provider = self.simulator.port if self.simulator else free_port()
        return product_environment(
            {
                **{name: os.environ[name] for name in kept if name in os.environ},
                "DATA_DIR": str(self.data_dir),
                "DATABASE_URL": self.database_url,
                "BROKER_URL": self.broker,
                "DEBUG": "false",
                "SECRET_KEY": self._secret,
                "PORT": str(self.port),
                "PUBLIC_BASE_URL": f"http://127.0.0.1:{self.port}",
                "SIMULATOR_PORT": str(provider),
                "DJANGO_SETTINGS_MODULE": "bench.settings",
                "PYTHONPATH": str(ROOT),
                **self.env,
                **changes,
            }
        )

    def start(self, line: str, *, name: str | None = None, **changes: str) -> None:
        """Start a line of `Procfile`; a second one of the same line needs a `name`."""
        command = read_procfile((ROOT / "Procfile").read_text())[line]
        with self._log_path(name or line).open("ab") as log:
            self._guards[name or line] = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(self._liveness), command],
                cwd=ROOT,
                env=self.environment(**changes),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self._liveness,),
                process_group=0,
            )
        if line == "web":
            self._wait_ready(int(changes.get("PORT", self.port)))

    def stop(self, name: str) -> None:
        """SIGTERM, and time to end what it is in."""
        guard = self._guards.pop(name)
        guard.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(STOP_SECONDS)
        kill_group(guard.pid)
        guard.wait()

    def group(self, name: str) -> int:
        """The process group of a started line, its guard being the first of it."""
        return self._guards[name].pid

    def inside(self, **changes: str) -> Inside:
        return Inside(self.environment(**changes))

    def manage(self, *arguments: str) -> str:
        """Run `manage.py`; what it printed. Raises: RuntimeError."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{arguments[0]} failed: {done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done.stdout

    def logs(self) -> str:
        paths = [self._log_path(name) for name in self._guards]
        return "\n".join(f"--- {path.name} ---\n{path.read_text(errors='replace')[-4000:]}" for path in paths)

    def _wait_ready(self, port: int) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            try:
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.1)
            finally:
                connection.close()
        raise RuntimeError(f"the web process does not answer\n{self.logs()}")

    def _on_server(self, statement: sql.SQL) -> None:
        server = urlsplit(self.server)._replace(path="/postgres").geturl()
        with psycopg.connect(for_libpq(server), autocommit=True) as connection:
            connection.execute(statement.format(sql.Identifier(self.database)))

    def _log_path(self, name: str) -> Path:
        return self.data_dir / f"{name}.log"


def for_libpq(url: str) -> str:
    """The address as the driver spells it; ours are spelled as Django's settings read them."""
    return url.replace("postgres://", "postgresql://", 1)
