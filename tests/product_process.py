"""The product as its real processes: gunicorn, a Celery worker and beat, on a database and port of their own.

    with ProductProcess(tmp_path, simulator=simulator) as product:
        client_id = product.submit(prompt="a cat")
        product.wait_until(client_id, "completed")

The commands are the lines of `Procfile`, each under the guard that `make run` uses: whatever happens to the
process that runs the tests, nothing that it started stays behind.
"""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import psycopg
import redis
from psycopg import sql

from config.runner import GUARD, kill_group, product_environment, read_procfile
from tests.simulator_process import Reply, SimulatorProcess, free_port

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = ("web", "worker", "beat")
START_SECONDS = 40.0  # three interpreters that import Django, on a busy machine
STOP_SECONDS = 30.0  # longer than the web process may take to finish its requests
LOOK_SECONDS = 0.1  # between two looks at a task
LOG_TAIL = 4000  # characters of each log that a failure shows
USER, PASSWORD = "tester", "correct horse battery"
BALANCE = "10000"
_numbers = count(1)
_products = count()


def _own_redis(url: str) -> str:
    """One of the numbered databases 8 to 15 of a Redis, emptied: products that share one take each other's
    bells. Test processes that run side by side get four each.
    """
    if not url.startswith("redis"):
        return url
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    number = 8 + worker % 2 * 4 + next(_products) % 4
    own = urllib.parse.urlsplit(url)._replace(path=f"/{number}").geturl()
    with redis.Redis.from_url(own) as broker:
        broker.flushdb()
    return own


@dataclass
class ProductProcess:
    """One installation in `data_dir`; with `DATABASE_URL` set, or `database_url`, on a fresh database there.

    `database_url` names a PostgreSQL server by one of its databases; the one that is made for this product is
    dropped at the end. `broker_url` is a Redis, used as it is; of that in `BROKER_URL` each product gets an
    emptied numbered database. Without both the broker is a folder.
    Without a `simulator` it starts one of its own. `env` overrides single settings.
    """

    data_dir: Path
    database_url: str | None = None
    broker_url: str | None = None
    simulator: SimulatorProcess | None = field(default=None, kw_only=True)
    env: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    balance: str = field(default=BALANCE, kw_only=True)
    port: int = field(default_factory=free_port, kw_only=True)
    command_seconds: ClassVar[float] = 60.0  # for one command of `manage.py`
    token: str = field(default="", init=False)
    _guards: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.database_url = self.database_url or os.environ.get("DATABASE_URL")
        self.broker_url = self.broker_url or _own_redis(os.environ.get("BROKER_URL", "")) or None
        self.user, self.password = USER, PASSWORD
        self._owns_simulator = self.simulator is None
        self._database: str | None = None
        self._liveness: int | None = None
        self._alive: int | None = None
        self._environment: dict[str, str] = {}

    # --- from nothing to a running product, and back ----------------------------------------------

    def __enter__(self) -> "ProductProcess":
        try:
            self.prepare()
            self.start_all()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.logs(), file=sys.stderr)
        self.close()

    def prepare(self) -> None:
        """Make database, tables, prices and a user with money and a token; nothing runs yet."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        if self.simulator is None:
            self.simulator = SimulatorProcess(self.data_dir / "provider").start()
        if self.database_url:
            self._database = f"oncereel_product_{os.getpid()}_{next(_numbers)}"
            self._on_server(sql.SQL("CREATE DATABASE {}"))
        self._environment = self._make_environment()
        self._liveness, self._alive = os.pipe()
        self.manage("migrate", "--noinput", "--verbosity", "0")
        self.manage("load_prices")
        self.manage("create_user", USER, "--password", PASSWORD)
        self.token = self.manage("create_token", USER).strip()
        self.top_up(self.balance, reference="first-money")

    def close(self) -> None:
        """End every process and drop the database."""
        for name in reversed(PROCESSES):
            self.kill(name)
        for descriptor in (self._alive, self._liveness):
            if descriptor is not None:
                os.close(descriptor)
        self._alive = self._liveness = None
        if self._owns_simulator and self.simulator is not None:
            self.simulator.stop()
        if self._database is not None:
            self._on_server(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)"))
            self._database = None

    # --- processes --------------------------------------------------------------------------------

    def start_all(self) -> None:
        for name in PROCESSES:
            self.start(name, wait=False)
        self.wait_ready()

    def start_missing(self) -> None:
        """Start again what a test has ended."""
        for name in PROCESSES:
            if not self.is_running(name):
                self._guards.pop(name, None)
                self.start(name)

    def start(self, name: str, *, wait: bool = True) -> None:
        """Start `web`, `worker` or `beat`; with `wait` the web process answers when this returns."""
        if self.is_running(name):
            raise RuntimeError(f"{name} runs already")
        command = read_procfile((ROOT / "Procfile").read_text())[name]
        assert self._liveness is not None
        with self._log_path(name).open("ab") as log:
            self._guards[name] = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(self._liveness), command],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self._liveness,),
                process_group=0,
            )
        if wait and name == "web":
            self.wait_ready()

    def stop(self, name: str) -> None:
        """End a process as a deploy does: SIGTERM, and time to finish what it is in."""
        guard = self._guards.pop(name, None)
        if guard is None:
            return
        guard.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(STOP_SECONDS)
        self._end(guard)

    def kill(self, name: str) -> None:
        """End a process and its children as a power cut does: SIGKILL."""
        guard = self._guards.pop(name, None)
        if guard is not None:
            self._end(guard)

    def restart(self, name: str, *, kill: bool = False) -> None:
        self.kill(name) if kill else self.stop(name)
        self.start(name)

    def freeze(self, name: str) -> None:
        """Suspend a process and its children, as a laptop's lid or a stalled disk does."""
        os.killpg(self._guards[name].pid, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        os.killpg(self._guards[name].pid, signal.SIGCONT)

    def is_running(self, name: str) -> bool:
        return name in self._guards and self._guards[name].poll() is None

    def wait_ready(self) -> None:
        """Return once the web process answers. Raises: RuntimeError, with the logs."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.is_running("web"):
            try:
                if self.request("GET", "/readyz", timeout=5).status == 200:
                    return
            except OSError:
                time.sleep(LOOK_SECONDS)
        raise RuntimeError(f"the web process does not answer\n{self.logs()}")

    def logs(self) -> str:
        """The end of every log, for a failure's message."""
        parts = []
        for name in PROCESSES:
            path = self._log_path(name)
            text = path.read_text(errors="replace") if path.exists() else ""
            parts.append(f"--- {name} ---\n{text[-LOG_TAIL:]}")
        return "\n".join(parts)

    # --- commands ---------------------------------------------------------------------------------

    def manage(self, *arguments: str) -> str:
        """Run `manage.py` on this product's database; what it printed. Raises: RuntimeError."""
        return self._run([sys.executable, "manage.py", *arguments])

    def python(self, program: str) -> str:
        """Run a program that may use this product's models; what it printed. Raises: RuntimeError."""
        return self._run([sys.executable, "-c", f"import django\ndjango.setup()\n{program}"])

    def top_up(self, amount: str, *, reference: str | None = None) -> None:
        self.manage("top_up", USER, amount, "--reference", reference or f"money-{uuid.uuid4()}")

    def assert_invariants(self) -> None:
        """The rules of `tests/invariants_check.py` on this product's database and its provider's journal."""
        told = self.python("from tests.invariants_check import violations\nprint(*violations(), sep='\\n')")
        assert told.strip() == "", told
        assert self.simulator is not None
        twice = self.simulator.request("GET", "/_sim/summary").json["duplicates_by_marker"]
        assert twice == {}, twice

    # --- HTTP -------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30,
    ) -> Reply:
        """One HTTP request without credentials, never repeated. Raises: OSError, HTTPException."""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body=raw, headers=dict(headers or {}))
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def api(self, method: str, path: str, *, body: Any = None, timeout: float = 30) -> Reply:
        """The same with the user's token and JSON."""
        headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        return self.request(method, path, body=body, headers=headers, timeout=timeout)

    def submit(self, **fields: Any) -> str:
        """Order a video; its client id."""
        document = {"id": str(uuid.uuid4()), "model": "veo3.1", "prompt": "a cat on a roof", **fields}
        reply = self.api("POST", "/api/videos", body=document)
        assert reply.status == 201, (reply.status, reply.body)
        return str(reply.json["id"])

    def video(self, client_id: str) -> dict[str, Any]:
        reply = self.api("GET", f"/api/videos/{client_id}")
        assert reply.status == 200, (reply.status, reply.body)
        document: dict[str, Any] = reply.json
        return document

    def wait_until(self, client_id: str, *states: str, seconds: float = 30) -> dict[str, Any]:
        """The task once it is in one of `states`. Raises: AssertionError, with the logs."""
        until = time.monotonic() + seconds
        while (document := self.video(client_id))["state"] not in states:
            if time.monotonic() > until:
                raise AssertionError(f"{document} is not {' or '.join(states)}\n{self.logs()}")
            time.sleep(LOOK_SECONDS)
        return document

    # --- inside -----------------------------------------------------------------------------------

    def _make_environment(self) -> dict[str, str]:
        simulator = self.simulator
        assert simulator is not None
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DJANGO_", "FAL_", "PYTEST_", "REPLICATE_", "SIMULATOR_"))
        }
        given = {
            **inherited,
            "DATA_DIR": str(self.data_dir),
            "PORT": str(self.port),
            "PUBLIC_BASE_URL": self.url,
            "SIMULATOR_PORT": str(simulator.port),
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "WORKER_CONCURRENCY": "2",
            "SWEEP_SECONDS": "2",
            **self.env,
        }
        for name, value in (("DATABASE_URL", self._own_database_url()), ("BROKER_URL", self.broker_url)):
            if value:
                given[name] = value
            else:
                given.pop(name, None)
        return product_environment(given)

    def _own_database_url(self) -> str | None:
        if self._database is None or self.database_url is None:
            return None
        return urllib.parse.urlsplit(self.database_url)._replace(path=f"/{self._database}").geturl()

    def _on_server(self, statement: sql.SQL) -> None:
        assert self.database_url is not None and self._database is not None
        server = urllib.parse.urlsplit(self.database_url)._replace(path="/postgres").geturl()
        with psycopg.connect(
            server.replace("postgres://", "postgresql://", 1), autocommit=True
        ) as connection:
            connection.execute(statement.format(sql.Identifier(self._database)))

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=self.command_seconds,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[1:3]} failed: {done.stdout[-LOG_TAIL:]}{done.stderr[-LOG_TAIL:]}")
        return done.stdout

    def _end(self, guard: subprocess.Popen[bytes]) -> None:
        kill_group(guard.pid)  # also what a dead master left behind
        guard.wait()

    def _log_path(self, name: str) -> Path:
        return self.data_dir / f"{name}.log"
