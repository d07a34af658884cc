"""The product as a production runs it: gunicorn, two Celery workers, beat, and the simulated provider.

Whatever dies is started again, as a process manager does.
"""

import os
import threading
import time
from pathlib import Path

from config.runner import read_procfile
from tests.chaos.guarded import Guarded, resident_bytes
from tests.product_process import ProductProcess
from tests.simulator_process import ROOT, SimulatorProcess, free_port

NAMES = ("simulator", "web", "worker-1", "worker-2", "beat")
LOOK_SECONDS = 0.2  # between two looks whether something died
READY_SECONDS = 60.0
# A master alone serves nobody: gunicorn has two workers, Celery two processes in its pool.
LEAST = {"simulator": 1, "web": 3, "worker-1": 3, "worker-2": 3, "beat": 1}

# Short times, so that every time limit is passed in a run, many times over. The system checks allow them.
LEASE_SECONDS = 10  # more than connect and read of a submit, and five seconds
SETTINGS = {
    "DEBUG": "false",
    "LEASE_SECONDS": str(LEASE_SECONDS),
    "SUBMIT_CONNECT_SECONDS": "1",
    "SUBMIT_READ_SECONDS": "3",
    "SWEEP_SECONDS": "2",
    "FIRST_POLL_SECONDS": "1",
    "SLOWEST_POLL_SECONDS": "3",
    "PROVIDER_PROBE_SECONDS": "2",
    "UNKNOWN_REVIEW_AFTER": "10",
    "UNKNOWN_GIVE_UP_AFTER": "20",
    "MAX_JOB_SECONDS": "15",
    "BILL_LAG_SECONDS": "5",
    "RESULT_GIVE_UP_TRIES": "3",
    "RESULT_GIVE_UP_SECONDS": "10",
    "WEB_WORKERS": "2",
    "WORKER_CONCURRENCY": "2",
    "SIMULATOR_SECONDS": "1",
}


class Fleet(ProductProcess):
    """The five processes on one database and one broker. `deaths` counts what was started again."""

    command_seconds = 600.0  # the books of ten thousand videos

    def __init__(self, folder: Path, *, database_url: str, broker_url: str, liveness: int) -> None:
        provider = SimulatorProcess(folder / "provider", port=free_port())
        scratch = folder / "scratch"  # killed processes leave temporary folders behind
        scratch.mkdir(exist_ok=True)
        settings = {**SETTINGS, "TMPDIR": str(scratch)}
        super().__init__(
            folder / "product", database_url, broker_url, simulator=provider, env=settings, balance="1"
        )
        self.provider = provider
        self.processes: dict[str, Guarded] = {}
        self.deaths = 0
        self._liveness_of_all = liveness
        self._is_watching = threading.Event()
        self._watcher = threading.Thread(target=self._keep_running, name="watcher")

    def start_all(self) -> None:
        commands = read_procfile((ROOT / "Procfile").read_text())
        for name in NAMES:
            command = commands[name.partition("-")[0]]
            log = self._log_path(name)
            self.processes[name] = Guarded(name, command, log, self._environment, self._liveness_of_all)
            self.processes[name].start()
        self.wait_healed()
        self._is_watching.set()
        self._watcher.start()

    def is_running(self, name: str) -> bool:
        return self.processes[name].is_running

    def is_whole(self, name: str) -> bool:
        """Whether a service is there with the processes it forks."""
        return len(self.processes[name].everything()) >= LEAST[name]

    def wait_for_provider(self) -> None:
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            try:
                if self.provider.request("GET", "/_sim/healthz", timeout=2).status == 200:
                    return
            except OSError:
                time.sleep(LOOK_SECONDS)
        raise RuntimeError("the simulator does not answer")

    def wait_healed(self) -> None:
        """Return once every process is there with its children, and web and provider answer."""
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            if all(self.is_whole(name) for name in NAMES):
                self.wait_ready()
                self.wait_for_provider()
                return
            time.sleep(LOOK_SECONDS)
        raise RuntimeError(f"the processes do not come back\n{self.logs()}")

    def memory(self) -> dict[str, int]:
        """Resident bytes of each process with its children."""
        return {name: resident_bytes(process.everything()) for name, process in self.processes.items()}

    def close(self) -> None:
        if self._is_watching.is_set():
            self._is_watching.clear()
            self._watcher.join()
        for process in self.processes.values():
            process.bury()
        for descriptor in (self._alive, self._liveness):
            if descriptor is not None:
                os.close(descriptor)
        self._alive = self._liveness = None  # the database goes with its cluster

    def _keep_running(self) -> None:
        while self._is_watching.is_set():
            for process in self.processes.values():
                if not process.is_running:
                    self.deaths += 1
                    process.bury()
                    process.start()
            time.sleep(LOOK_SECONDS)
