"""The runner: what it tells its processes, and that nothing it started outlives it."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config import runner
from config.runner import (
    CannotRun,
    lock_data_dir,
    product_environment,
    read_procfile,
    require_free_port,
)

PROJECT = Path(runner.__file__).resolve().parent.parent

# A stand-in for the product: its processes fork children of their own, as gunicorn and Celery do. It runs the
# real `Runner`; only the commands differ.
DRIVER = """
import os, sys
from pathlib import Path
from config import runner

here = Path(sys.argv[1])
runner.STOP_SECONDS = float(sys.argv[3])
product = runner.Runner(dict(os.environ) | {"HERE": str(here), "PORT": sys.argv[2]})
try:
    for step in sys.argv[4:]:
        product.run_step("step", step)
    product.announce_when_ready("127.0.0.1", "Ready.")
    product.run_forever(runner.read_procfile((here / "Procfile").read_text()))
except runner.CannotRun as reason:
    print(reason)
    sys.exit(1)
"""

# Listens on the port, forks a child that holds the port as well, and writes down both.
SERVER = """
import http.server, os, pathlib, signal, sys, threading, time

here = pathlib.Path(os.environ["HERE"])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *arguments):
        pass

server = http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer)
child = os.fork()
if child == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)
with open(here / "pids", "a") as file:
    file.write(f"{os.getpid()} {child}\\n")
def stop(number, frame):
    with open(here / "stopped", "a") as file:
        file.write("stopped\\n")
    if len(sys.argv) == 1:
        threading.Thread(target=server.shutdown).start()
signal.signal(signal.SIGTERM, stop)
print("serving", flush=True)
server.serve_forever()
"""

GUNICORN_APPLICATION = """
def application(environ, start_response):
    start_response("200 OK", [])
    return [b""]
"""

CELERY_APPLICATION = """
from pathlib import Path
from celery import Celery
from core.filesystem_broker import broker_settings

app = Celery("bells")
app.conf.update(broker_settings(Path(__file__).parent), worker_pool="prefork")
"""


class Product:
    """The runner as a real process, in a process group of its own, as a shell or a CI job starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder / "log"
        (folder / "driver.py").write_text(DRIVER)
        (folder / "server.py").write_text(SERVER)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, procfile: str, *, steps: tuple[str, ...] = (), stop_seconds: float = 18.0) -> None:
        (self.folder / "Procfile").write_text(procfile)
        arguments = [str(self.folder), str(self.port), str(stop_seconds), *steps]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(self.folder / "driver.py"), *arguments],
                cwd=PROJECT,
                env=os.environ | {"PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def wait(self, seconds: float = 15) -> int:
        assert self.process is not None
        return self.process.wait(seconds)

    def output(self) -> str:
        return self.log.read_text()

    def wait_for_output(self, text: str, *, times: int = 1) -> None:
        wait_until(lambda: self.output().count(text) >= times, seconds=15)

    def pids(self) -> list[int]:
        """Server, its child, next server, its child, …"""
        pids: list[int] = []
        for line in (self.folder / "pids").read_text().splitlines():
            pids += [int(word) for word in line.split()]
        return pids

    def end(self) -> None:
        """Leave nothing behind, whatever the test found."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        if (self.folder / "pids").exists():
            for pid in self.pids():
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def state_and_parent(pid: int) -> tuple[str, int]:
    """The state's letter ("" if there is no such process) and the parent, as `ps` shows them."""
    if Path("/proc/self/stat").exists():  # Linux, where a container may have no `ps`
        try:
            state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            return "", 0
        return state, int(parent)
    command = ["ps", "-o", "stat=,ppid=", "-p", str(pid)]
    words = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return (words[0][0], int(words[1])) if words else ("", 0)


def descendants_of(pid: int) -> list[int]:
    """Children, their children, and so on."""
    if Path("/proc/self/stat").exists():
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    else:
        listed = subprocess.run(["ps", "-axo", "pid="], capture_output=True, text=True, check=True)
        pids = [int(word) for word in listed.stdout.split()]
    parents = [(process, parent_of(process)) for process in pids]
    found = [pid]
    for ancestor in found:  # grows while it is walked
        found += [child for child, parent in parents if parent == ancestor]
    return found[1:]


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that is dead and only waits to be reaped does not."""
    return state_and_parent(pid)[0] not in ("", "Z", "X")


def parent_of(pid: int) -> int:
    return state_and_parent(pid)[1]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], bool], *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"did not come true in {seconds} s"
        time.sleep(0.05)


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    product = Product(tmp_path)
    yield product
    product.end()


WEB = f"web: {sys.executable} $HERE/server.py\n"
STUBBORN_WEB = f"web: {sys.executable} $HERE/server.py stubborn\n"
IDLE = "idle: sleep 600\n"


# --- how it ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("whom", ["the runner alone", "the runner's whole process group"])
def test_after_sigkill_no_child_lives_and_the_port_is_free(product: Product, whom: str) -> None:
    product.start(WEB + IDLE)
    product.wait_for_output("Ready.")
    server, forked = product.pids()
    guard = parent_of(server)
    assert all(is_alive(pid) for pid in (server, forked, guard))
    assert listens(product.port)

    if whom == "the runner alone":
        os.kill(product.pid, signal.SIGKILL)
    else:
        os.killpg(product.pid, signal.SIGKILL)

    assert product.wait() == -signal.SIGKILL
    wait_until(lambda: not any(is_alive(pid) for pid in (server, forked, guard)), seconds=10)
    assert not listens(product.port)


def test_after_sigkill_the_children_of_gunicorn_and_celery_are_gone_too(product: Product) -> None:
    (product.folder / "answer.py").write_text(GUNICORN_APPLICATION)
    (product.folder / "bells.py").write_text(CELERY_APPLICATION)
    binaries = Path(sys.executable).parent
    gunicorn = f"{binaries}/gunicorn --no-control-socket --config config/gunicorn.py --workers 2"
    celery = f"{binaries}/celery --workdir $HERE --app bells worker --concurrency 2 --loglevel INFO"
    product.start(f"web: {gunicorn} --pythonpath $HERE answer\nworker: {celery}\n")
    product.wait_for_output("Ready.")
    product.wait_for_output(" ready.")  # the worker's
    family = descendants_of(product.pid)
    # Two guards, gunicorn and its two workers, Celery and its two.
    assert len(family) == 8

    os.kill(product.pid, signal.SIGKILL)

    assert product.wait() == -signal.SIGKILL
    wait_until(lambda: not any(is_alive(pid) for pid in family), seconds=10)
    assert not listens(product.port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda n: n.name)
def test_a_stop_signal_ends_everything_in_good_order(product: Product, number: signal.Signals) -> None:
    product.start(WEB + IDLE)
    product.wait_for_output("Ready.")
    pids = product.pids()

    os.killpg(product.pid, number)

    assert product.wait() == 0
    assert (product.folder / "stopped").read_text() == "stopped\n"  # asked once, not killed
    assert not any(is_alive(pid) for pid in pids)  # its child ignores SIGTERM and went with the group
    assert not listens(product.port)
    assert "stopping web, idle" in product.output()


def test_a_process_that_does_not_stop_in_time_is_killed(product: Product) -> None:
    product.start(STUBBORN_WEB, stop_seconds=1.0)
    product.wait_for_output("Ready.")
    began = time.monotonic()
    os.kill(product.pid, signal.SIGTERM)
    assert product.wait() == 0
    assert time.monotonic() - began >= 1.0
    assert "web did not stop; killing it" in product.output()
    assert not any(is_alive(pid) for pid in product.pids())
    assert not listens(product.port)


def test_a_second_ctrl_c_kills_at_once_but_a_repeated_sigterm_does_not(product: Product) -> None:
    product.start(STUBBORN_WEB)
    product.wait_for_output("Ready.")
    os.kill(product.pid, signal.SIGTERM)
    product.wait_for_output("stopping web")
    os.kill(product.pid, signal.SIGTERM)
    time.sleep(0.5)
    assert is_alive(product.pid)
    assert "killing it" not in product.output()
    os.kill(product.pid, signal.SIGINT)
    assert product.wait(5) == 0  # long before the 18 s are over
    assert not any(is_alive(pid) for pid in product.pids())


def test_a_killed_runner_takes_a_running_step_with_it(product: Product) -> None:
    product.start(WEB, steps=(f"{sys.executable} $HERE/server.py",))
    product.wait_for_output("serving")
    os.kill(product.pid, signal.SIGKILL)
    product.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in product.pids()), seconds=10)
    assert not listens(product.port)


# --- restarts -------------------------------------------------------------------------------------


def test_a_process_that_dies_is_started_again_and_its_orphans_are_removed_first(product: Product) -> None:
    product.start(WEB)
    product.wait_for_output("Ready.")
    first, orphan = product.pids()
    os.kill(first, signal.SIGKILL)
    product.wait_for_output("serving", times=2)
    assert re.search(r"web ended with status 137; starting it again in 1 s", product.output())
    assert not is_alive(orphan)  # it held the port
    assert is_alive(product.pids()[2])


def test_a_killed_guard_does_not_leave_its_process_behind(product: Product) -> None:
    product.start(WEB)
    product.wait_for_output("Ready.")
    first, orphan = product.pids()
    os.kill(parent_of(first), signal.SIGKILL)
    product.wait_for_output("serving", times=2)
    assert not is_alive(first)
    assert not is_alive(orphan)


def test_a_process_that_keeps_dying_is_started_ever_later(product: Product) -> None:
    product.start("bad: sh -c 'echo one last word; exit 3'\n")
    product.wait_for_output("starting it again in 2 s")
    lines = [line for line in product.output().splitlines() if line.startswith(("bad", "oncereel"))]
    assert lines[:4] == [
        "bad       | one last word",
        "oncereel  | bad ended with status 3; starting it again in 1 s",
        "bad       | one last word",
        "oncereel  | bad ended with status 3; starting it again in 2 s",
    ]


# --- before it starts -----------------------------------------------------------------------------


def test_a_failed_step_stops_the_start_and_says_which(product: Product) -> None:
    product.start(WEB, steps=("echo prepared", "sh -c 'echo no such table; exit 4'"))
    assert product.wait() == 1
    assert product.output().splitlines() == [
        "step      | prepared",
        "step      | no such table",
        "`sh -c 'echo no such table; exit 4'` failed with status 4; see above.",
    ]
    assert not (product.folder / "pids").exists()


def test_a_taken_port_is_refused_by_number_and_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PORT_FREE_SECONDS", 0.0)
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = owner.getsockname()[1]
        with pytest.raises(CannotRun) as refusal:
            require_free_port("127.0.0.1", "SIMULATOR_PORT", {"SIMULATOR_PORT": str(port)})
    assert str(refusal.value) == (
        f"Port {port} is taken by another program. Stop that program, "
        f"or name another port: SIMULATOR_PORT={port + 10} make run"
    )
    require_free_port("127.0.0.1", "SIMULATOR_PORT", {"SIMULATOR_PORT": str(port)})  # free now


@pytest.mark.parametrize("text", ["", "eighty", "0", "65536", "-1"])
def test_a_port_that_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(CannotRun, match=f"^PORT={text} is not a port number"):
        require_free_port("127.0.0.1", "PORT", {"PORT": text})


def test_the_command_itself_refuses_a_taken_port_and_starts_nothing(tmp_path: Path) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = owner.getsockname()[1]
        environment = os.environ | {
            "PORT": str(port),
            "SIMULATOR_PORT": str(free_port()),
            "DATA_DIR": str(tmp_path / "var"),
        }
        ended = subprocess.run(
            [sys.executable, "-m", "config.runner"],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"Oncereel cannot start. Port {port} is taken by another program.")
    assert not (tmp_path / "var").exists()


def test_one_data_folder_has_one_runner(tmp_path: Path) -> None:
    held = lock_data_dir(tmp_path / "var")
    with pytest.raises(CannotRun, match="already running with the data in"):
        lock_data_dir(tmp_path / "var")
    os.close(held)
    os.close(lock_data_dir(tmp_path / "var"))


def test_a_data_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CannotRun, match=r"Cannot write to .*/file/var \(DATA_DIR\)"):
        lock_data_dir(tmp_path / "file/var")


# --- the environment and the process file ---------------------------------------------------------


def test_without_any_setting_the_provider_is_the_simulator() -> None:
    environment = product_environment({"PATH": "/bin"}, python="/venv/bin/python")
    assert environment == {
        "PATH": f"/venv/bin{os.pathsep}/bin",
        "PYTHONUNBUFFERED": "1",
        "DATA_DIR": str(PROJECT / "var"),
        "PORT": "8000",
        "SIMULATOR_PORT": "8900",
        "BIND_HOST": "127.0.0.1",
        "DEBUG": "true",
        "PUBLIC_BASE_URL": "http://127.0.0.1:8000",
        "FAL_BASE_URL": "http://127.0.0.1:8900",
        "FAL_API_URL": "http://127.0.0.1:8900",
        "FAL_JWKS_URL": "http://127.0.0.1:8900/.well-known/jwks.json",
        "FAL_KEY": "demo-key:demo-secret",
        "RESULT_HOSTS": "127.0.0.1:8900",
    }


def test_what_the_operator_set_is_kept() -> None:
    given = {
        "PORT": "8010",
        "SIMULATOR_PORT": "8911",
        "DEBUG": "false",
        "DATA_DIR": "/data",
        "FAL_KEY": "mine",
        "RESULT_HOSTS": "media.example",
        "PUBLIC_BASE_URL": "https://oncereel.example",
    }
    environment = product_environment(given)
    kept = {name: environment[name] for name in given if name != "RESULT_HOSTS"}
    assert kept == {name: value for name, value in given.items() if name != "RESULT_HOSTS"}
    assert environment["RESULT_HOSTS"] == "media.example,127.0.0.1:8911"
    assert environment["FAL_BASE_URL"] == "http://127.0.0.1:8911"


def test_with_a_provider_of_the_operator_nothing_points_at_the_simulator() -> None:
    given = {"FAL_BASE_URL": "https://provider.example"}
    environment = product_environment(given)
    assert not runner.uses_simulator(given)
    assert environment["FAL_BASE_URL"] == "https://provider.example"
    assert {"FAL_API_URL", "FAL_JWKS_URL", "FAL_KEY", "RESULT_HOSTS"}.isdisjoint(environment)


def test_the_process_file_names_the_four_processes() -> None:
    commands = read_procfile((PROJECT / "Procfile").read_text())
    assert list(commands) == ["web", "worker", "beat", "simulator"]
    assert "--no-control-socket" in commands["web"]  # gunicorn would open one in the home folder
    assert " --beat" not in commands["worker"] and " -B" not in commands["worker"]


@pytest.mark.parametrize("line", ["web", "web:", "two words: sleep", ": sleep", "web: a\nweb: b"])
def test_a_line_that_is_no_process_is_refused(line: str) -> None:
    with pytest.raises(CannotRun, match="Procfile line"):
        read_procfile(line)


def test_the_runner_and_its_guard_need_the_standard_library_alone(tmp_path: Path) -> None:
    """It must be able to say what is wrong when nothing is installed."""
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(PROJECT)!r}); "
         "import config.runner, config.process_guard"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert ended.stderr == ""
    assert ended.returncode == 0
