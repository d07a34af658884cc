"""One command from a fresh clone to a running product: `python -m config.runner` (which is `make run`).

Prepares the database and the demo, then runs every line of `Procfile`, prefixes its output, starts again what
dies, and takes everything down with it. Standard library only: it must be able to say what is wrong when
nothing else works. In production a process manager runs the lines of `Procfile`, as many of each as needed.

Every process has a guard (`config/process_guard.py`) that leads its process group, so nothing survives the
runner, whichever way it ends.
"""

import errno
import fcntl
import http.client
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUARD = ROOT / "config" / "process_guard.py"
STEPS = (
    ("locale", "python manage.py compile_locale"),
    ("database", "python manage.py migrate --noinput --verbosity 0"),
)
DEMO_STEP = ("demo", "python manage.py seed_demo")
STATIC_STEP = ("static", "python manage.py collectstatic --noinput --verbosity 0")
STOP_SECONDS = 18.0  # from SIGTERM to SIGKILL; whoever stops the runner usually waits 20 s
KILLED_SECONDS = 5.0  # a killed process that is not gone by then is stuck in the kernel
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 1.0, 30.0  # before a process that died is started again
HEALTHY_SECONDS = 60.0  # after running this long, the next death counts as the first
PORT_FREE_SECONDS = 3.0  # the guards of a runner that was just killed may still be at work
READY_SECONDS = 0.3  # between two looks whether the product answers
COLOURS = (36, 33, 35, 32, 34, 31)  # of ANSI terminals: cyan, yellow, magenta, green, blue, red


class CannotRun(Exception):
    """Why the product can't be started, in a sentence for the person who tried."""


@dataclass
class Process:
    """One line of `Procfile`, or one step of the preparation."""

    name: str
    command: str
    colour: int = 0
    guard: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0  # when to start it (again), on the monotonic clock
    deaths: int = 0
    unfinished_line: bytes = field(default=b"", repr=False)


def product_environment(given: Mapping[str, str], *, python: str = sys.executable) -> dict[str, str]:
    """The environment of the product's processes: what the operator `given`, completed for the demo.

    The provider is the simulator, unless the operator names another one.
    """
    environment = dict(given)
    # Not resolved: in a virtual environment the interpreter is a link, and its neighbours are the commands.
    environment["PATH"] = f"{Path(python).parent}{os.pathsep}{given.get('PATH', os.defpath)}"
    environment["PYTHONUNBUFFERED"] = "1"
    environment["DATA_DIR"] = str((ROOT / given.get("DATA_DIR", "var")).resolve())
    environment.setdefault("PORT", "8000")
    environment.setdefault("SIMULATOR_PORT", "8900")
    environment.setdefault("BIND_HOST", "127.0.0.1")
    environment.setdefault("DEBUG", "true")
    environment.setdefault("PUBLIC_BASE_URL", f"http://127.0.0.1:{environment['PORT']}")
    if uses_simulator(given):
        simulator = f"127.0.0.1:{environment['SIMULATOR_PORT']}"
        environment["FAL_BASE_URL"] = f"http://{simulator}"
        environment["FAL_API_URL"] = f"http://{simulator}"
        environment["FAL_JWKS_URL"] = f"http://{simulator}/.well-known/jwks.json"
        environment.setdefault("FAL_KEY", "demo-key:demo-secret")
        hosts = [host for host in given.get("RESULT_HOSTS", "").split(",") if host]
        environment["RESULT_HOSTS"] = ",".join([*hosts, simulator])
    return environment


def uses_simulator(given: Mapping[str, str]) -> bool:
    """Whether the operator left the choice of the provider to us."""
    return not given.get("FAL_BASE_URL")


def read_procfile(text: str) -> dict[str, str]:
    """Process name → command, in the file's order.

    Raises:
        CannotRun: a line is not `name: command`.
    """
    commands: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, command = line.partition(":")
        if not (colon and name.isidentifier() and command.strip()) or name in commands:
            raise CannotRun(f"Procfile line {number} is not `name: command`: {line}")
        commands[name] = command.strip()
    return commands


def require_free_port(host: str, variable: str, environment: Mapping[str, str]) -> None:
    """Refuse early and by name, before anything is started.

    Raises:
        CannotRun: another program listens there, or it can't be bound.
    """
    try:
        port = int(environment[variable])
        if not 0 < port < 65536:
            raise ValueError
    except ValueError:
        raise CannotRun(f"{variable}={environment[variable]} is not a port number.") from None
    until = time.monotonic() + PORT_FREE_SECONDS
    while True:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # a closed connection's rest is no owner
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise CannotRun(
                        f"Cannot listen on {host}:{port} ({variable}): {error.strerror}."
                    ) from None
                if time.monotonic() > until:
                    raise CannotRun(
                        f"Port {port} is taken by another program. Stop that program, "
                        f"or name another port: {variable}={port + 10} make run"
                    ) from None
            else:
                return
        time.sleep(0.2)


def lock_data_dir(data_dir: Path) -> int:
    """Hold the folder for this runner; two schedules on one database would only disturb each other.

    Returns the descriptor that holds the lock; the kernel frees it with the process.

    Raises:
        CannotRun: another runner holds it, or the folder can't be written.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(data_dir / "runner.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise CannotRun(f"Cannot write to {data_dir} (DATA_DIR): {error.strerror}.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CannotRun(f"Oncereel is already running with the data in {data_dir} (DATA_DIR).") from None
    return descriptor


class Runner:
    """Runs processes, each under its guard, until a signal asks it to stop."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.is_stopping = False
        self.kill_at_once = False
        self._output = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._processes: list[Process] = []
        self._has_colours = sys.stdout.isatty() and "NO_COLOR" not in environment
        # Nobody writes here. When this process is gone the guards read the end.
        self._liveness, self._alive = os.pipe()
        wake_reader, wake_writer = os.pipe()
        os.set_blocking(wake_reader, False)
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self._selector.register(wake_reader, selectors.EVENT_READ, None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._request_stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def run_step(self, name: str, command: str) -> None:
        """Run one command to its end.

        Raises:
            CannotRun: it failed.
        """
        step = Process(name, command)
        self._processes = [step]
        self._start(step)
        while step.guard is not None:
            self._turn(0.5)
            if self.is_stopping:
                self._stop_all()
                return
            if (status := self._ended(step)) is not None and status != 0:
                raise CannotRun(f"`{command}` failed with status {status}; see above.")

    def run_forever(self, commands: Mapping[str, str]) -> None:
        """Run all commands until asked to stop; whatever dies is started again, later each time."""
        self._processes = [
            Process(name, command, COLOURS[index % len(COLOURS)])
            for index, (name, command) in enumerate(commands.items())
        ]
        while not self.is_stopping:
            now = time.monotonic()
            for process in self._processes:
                if process.guard is None and process.start_at <= now:
                    self._start(process)
            waits = [p.start_at - now for p in self._processes if p.guard is None]
            self._turn(max(0.0, min([5.0, *waits])))
            for process in self._processes:
                if (status := self._ended(process)) is not None and not self.is_stopping:
                    self._plan_restart(process, status)
        self._stop_all()

    def say(self, text: str, *, name: str = "oncereel", colour: int = 0) -> None:
        """Print one line under a process's name."""
        label = f"{name:9} | "
        if self._has_colours and colour:
            label = f"\x1b[{colour}m{label}\x1b[0m"
        with self._output:
            print(label + text, flush=True)

    def announce_when_ready(self, host: str, text: str) -> None:
        """Print `text` once the product answers; looks in the background until then."""

        def look() -> None:
            while not self.is_stopping:
                if answers(host, int(self.environment["PORT"]), "/readyz"):
                    self.say(text, colour=32)
                    return
                time.sleep(READY_SECONDS)

        threading.Thread(target=look, name="ready", daemon=True).start()

    def _request_stop(self, number: int, frame: object) -> None:
        # Only Ctrl-C twice means impatience: make hands on a SIGTERM that its whole group has got already.
        self.kill_at_once = self.is_stopping and number == signal.SIGINT
        self.is_stopping = True

    def _start(self, process: Process) -> None:
        process.guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), str(self._liveness), process.command],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(self._liveness,),
            process_group=0,
        )
        process.started_at = time.monotonic()
        assert process.guard.stdout is not None
        os.set_blocking(process.guard.stdout.fileno(), False)
        self._selector.register(process.guard.stdout, selectors.EVENT_READ, process)

    def _turn(self, seconds: float) -> None:
        """Pass on what the processes print, until something happens or `seconds` are over."""
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                os.read(key.fd, 4096)  # a signal; its handler has run, or runs now
            else:
                self._pass_on(key.data, key.fd)

    def _pass_on(self, process: Process, descriptor: int) -> bool:
        """Print whole lines; False when nothing more will come or nothing is there."""
        try:
            content = os.read(descriptor, 65536)
        except BlockingIOError:
            return False
        *lines, rest = (process.unfinished_line + content).split(b"\n")
        if not content:
            self._selector.unregister(descriptor)
            lines, rest = ([rest] if rest else []), b""
        process.unfinished_line = rest
        for line in lines:
            self.say(line.decode(errors="replace"), name=process.name, colour=process.colour)
        return bool(content)

    def _ended(self, process: Process) -> int | None:
        """Its status if the process has ended since the last call; then nothing of its group is left."""
        guard = process.guard
        if guard is None or (status := guard.poll()) is None:
            return None
        kill_group(guard.pid)  # what a dead master left behind still holds its port
        assert guard.stdout is not None
        if guard.stdout.fileno() in self._selector.get_map():
            while self._pass_on(process, guard.stdout.fileno()):
                continue
        if guard.stdout.fileno() in self._selector.get_map():
            self._selector.unregister(guard.stdout)
        guard.stdout.close()
        process.guard = None
        return status

    def _plan_restart(self, process: Process, status: int) -> None:
        if time.monotonic() - process.started_at > HEALTHY_SECONDS:
            process.deaths = 0
        delay = min(FIRST_DELAY_SECONDS * 2**process.deaths, LONGEST_DELAY_SECONDS)
        process.deaths += 1
        process.start_at = time.monotonic() + delay
        self.say(f"{process.name} ended with status {status}; starting it again in {delay:.0f} s", colour=31)

    def _stop_all(self) -> None:
        """SIGTERM to all, then SIGKILL to the groups of those that do not end in time."""
        running = [process for process in self._processes if process.guard is not None]
        if running:
            self.say(f"stopping {', '.join(process.name for process in running)}")
        for process in running:
            assert process.guard is not None
            process.guard.terminate()
        self._wait_for_end(STOP_SECONDS)
        for process in self._processes:
            if process.guard is not None:
                self.say(f"{process.name} did not stop; killing it", colour=31)
                kill_group(process.guard.pid)
        self.kill_at_once = False
        self._wait_for_end(KILLED_SECONDS)

    def _wait_for_end(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while any(process.guard is not None for process in self._processes):
            if time.monotonic() > until or self.kill_at_once:
                return
            self._turn(0.1)
            for process in self._processes:
                self._ended(process)


def kill_group(group: int) -> None:
    """SIGKILL a process group, if anything of it is left."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError:
        # macOS says so of a group that holds nothing but zombies.
        if sys.platform != "darwin":
            raise


def answers(host: str, port: int, path: str) -> bool:
    """Whether `GET path` gives 200, asked directly (urllib would go through the operator's proxy)."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def main(given: Mapping[str, str]) -> int:
    """Prepare and run the product; returns the status for the shell."""
    environment = product_environment(given)
    data_dir = Path(environment["DATA_DIR"])
    has_simulator = uses_simulator(given)
    try:
        commands = read_procfile((ROOT / "Procfile").read_text())
        if has_simulator:
            require_free_port("127.0.0.1", "SIMULATOR_PORT", environment)
        else:
            commands.pop("simulator", None)
        require_free_port(environment["BIND_HOST"], "PORT", environment)
        lock_data_dir(data_dir)
        runner = Runner(environment)
        is_demo = environment["DEBUG"].lower() in ("1", "true", "yes", "on")
        for name, command in (*STEPS, DEMO_STEP if is_demo else STATIC_STEP):
            if not runner.is_stopping:
                runner.run_step(name, command)
        if not runner.is_stopping:
            host = environment["BIND_HOST"].replace("0.0.0.0", "127.0.0.1")
            runner.announce_when_ready(
                host,
                f"Ready: http://{host}:{environment['PORT']}/ · users demo and admin, their passwords are "
                f"printed once, at the first start · data in {data_dir}"
                if is_demo
                else f"Ready: {environment['PUBLIC_BASE_URL']} · data in {data_dir}",
            )
            runner.run_forever(commands)
    except CannotRun as reason:
        print(f"Oncereel cannot start. {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
