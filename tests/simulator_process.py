"""Starts the simulator as its own process, for every test that needs a provider."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 20.0
STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a server certificate, its key, and the authority that signed it."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer as it came."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class SimulatorProcess:
    """One simulator on a loopback port that stays the same over restarts; its folder is `data_dir`."""

    data_dir: Path
    seconds: float | None = field(default=None, kw_only=True)
    instant: bool = field(default=True, kw_only=True)
    tls: Tls | None = field(default=None, kw_only=True)
    public_url: str | None = field(default=None, kw_only=True)
    key: str | None = field(default=None, kw_only=True)
    port: int = field(default_factory=lambda: free_port(), kw_only=True)
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> "SimulatorProcess":
        """Starts it and returns once it answers.

        Raises:
            RuntimeError: it ended or did not answer in time; the message holds what it said.
        """
        self.data_dir.mkdir(parents=True, exist_ok=True)
        log_path = self.data_dir / "simulator.log"
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "simulator"],
                cwd=ROOT,
                env=self._environment(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if self.request("GET", "/_sim/healthz", timeout=2).status == 200:
                    return self
            except OSError:
                time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"the simulator did not start: {log_path.read_text()[-2000:]}")

    def stop(self) -> None:
        """Ends it as a deploy would (SIGTERM)."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def restart(self, *, kill: bool = False) -> None:
        """Ends it and starts it again on the same port and folder."""
        self.kill() if kill else self.stop()
        self.start()

    def request(
        self,
        method: str,
        target: str,
        *,
        body: Any = None,
        key: str | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 30,
    ) -> Reply:
        """One HTTP request, never repeated; `body` goes as JSON unless it is bytes; `key` as fal's header.

        Raises:
            OSError, http.client.HTTPException: no whole answer came.
        """
        parts = urllib.parse.urlsplit(target)
        path = parts._replace(scheme="", netloc="").geturl()
        sent = dict(headers or {})
        if key is not None:
            sent["Authorization"] = f"Key {key}"
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = self._connection(timeout)
        try:
            connection.request(method, path, body=raw, headers=sent)
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def jobs(self, *, marker: str | None = None, endpoint: str | None = None) -> list[dict[str, Any]]:
        """The jobs that were taken, oldest first."""
        found: list[dict[str, Any]] = self._oracle("/_sim/jobs", marker=marker, endpoint=endpoint)
        return found

    def count(self, *, marker: str | None = None) -> int:
        """How many jobs were taken."""
        return int(self._oracle("/_sim/jobs/count", marker=marker)["count"])

    def posts(self) -> int:
        """How many POSTs came, refused ones too."""
        return int(self._oracle("/_sim/posts/count")["count"])

    def deliveries(self) -> list[dict[str, Any]]:
        """The webhook calls, oldest first."""
        found: list[dict[str, Any]] = self._oracle("/_sim/deliveries")
        return found

    def add_fault(
        self,
        fault: dict[str, Any],
        *,
        on: str = "submit",
        times: int | None = None,
        endpoint: str | None = None,
        prompt_contains: str | None = None,
    ) -> int:
        """Scripts a fault; it stands behind those already given. Returns its id."""
        match = {"on": on, "endpoint": endpoint, "prompt_contains": prompt_contains}
        reply = self.request("POST", "/_sim/faults", body={"match": match, "times": times, "fault": fault})
        if reply.status != 201:
            raise ValueError(reply.body.decode())
        return int(reply.json["ids"][0])

    def clear_faults(self) -> None:
        """Removes all scripted faults."""
        self.request("DELETE", "/_sim/faults")

    def reset(self) -> None:
        """Forgets all jobs, POSTs, calls and faults."""
        self.request("POST", "/_sim/reset")

    def _oracle(self, path: str, **filters: str | None) -> Any:
        query = urllib.parse.urlencode({name: value for name, value in filters.items() if value is not None})
        return self.request("GET", f"{path}?{query}").json

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        context = ssl.create_default_context(cafile=str(self.tls.authority))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)

    def _environment(self) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if "SIMULATOR" not in name}
        environment |= {
            "SIMULATOR_HOST": "127.0.0.1",
            "SIMULATOR_PORT": str(self.port),
            "DATA_DIR": str(self.data_dir),
            "PYTHONUNBUFFERED": "1",
        }
        if self.seconds is not None:
            environment["SIMULATOR_SECONDS"] = str(self.seconds)
        elif self.instant:
            environment["SIMULATOR_INSTANT"] = "1"
        if self.public_url is not None:
            environment["SIMULATOR_PUBLIC_URL"] = self.public_url
        if self.key is not None:
            environment["SIMULATOR_KEY"] = self.key
        if self.tls is not None:
            environment["SIMULATOR_TLS_CERT"] = str(self.tls.certificate)
            environment["SIMULATOR_TLS_KEY"] = str(self.tls.key)
        return environment

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None


def free_port() -> int:
    """A loopback port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
