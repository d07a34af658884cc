"""The embedded broker: whole messages or none, one worker each, and nothing in the folder stops a worker."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from celery import Celery
from kombu import Connection
from kombu.exceptions import ChannelError, OperationalError

from core import filesystem_broker
from core.filesystem_broker import Channel, broker_settings

PROJECT = Path(filesystem_broker.__file__).resolve().parent.parent
START_SECONDS = 30  # a worker's start on a busy machine

APPLICATION = """
import os, time
from pathlib import Path
from celery import Celery
from core.filesystem_broker import broker_settings

here = Path(os.environ["BELLS_FOLDER"])
app = Celery("bells")
app.conf.update(broker_settings(here), task_default_queue="bells", task_ignore_result=True)
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1)

@app.task(name="ring")
def ring(*, number):
    with open(here / "rung", "a") as file:
        file.write(f"{number} {os.getppid()} {time.time()}\\n")

@app.task(name="whoami")
def whoami():
    draft = here / "draft"
    draft.write_text(str(os.getpid()))
    draft.rename(here / "whoami")

@app.task(name="slow")
def slow():
    (here / "slow-began").touch()
    time.sleep(1.5)
    (here / "slow-ended").touch()

@app.task(name="hang")
def hang():
    (here / "hanging").touch()
    time.sleep(60)
"""


class Bells:
    """A folder, a publisher in this process, and real workers in others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bells.py").write_text(APPLICATION)
        self.app = Celery("publisher", set_as_current=False)
        self.app.conf.update(broker_settings(folder), task_default_queue="bells", task_ignore_result=True)
        self.workers: list[subprocess.Popen[bytes]] = []

    def ring(self, number: int) -> None:
        self.app.send_task("ring", kwargs={"number": number})

    def start_worker(self, *, pool: str = "") -> subprocess.Popen[bytes]:
        log = self.folder / f"worker-{len(self.workers)}.log"
        command = [sys.executable, "-m", "celery", "--app", "bells", "worker", "--queues", "bells"]
        command += ["--concurrency", "2", "--loglevel", "INFO", *(["--pool", pool] if pool else [])]
        command += ["--hostname", f"worker{len(self.workers)}@bells"]
        environment = os.environ | {
            "BELLS_FOLDER": str(self.folder),
            "PYTHONPATH": f"{self.folder}{os.pathsep}{PROJECT}",
        }
        environment.pop("BROKER_URL", None)  # Celery's command line would prefer it to the application's own
        with log.open("wb") as output:
            worker = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        self.workers.append(worker)
        wait_until(lambda: b"ready." in log.read_bytes(), seconds=START_SECONDS)
        return worker

    def rung(self) -> list[int]:
        try:
            lines = (self.folder / "rung").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [int(line.split()[0]) for line in lines]

    def waiting(self, queue: str = "bells") -> list[Path]:
        return sorted((self.folder / "broker/queues" / queue).glob("*.msg"))

    def rejected(self) -> list[Path]:
        return sorted((self.folder / "broker/rejected").glob("*"))

    def stop(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait(10)
        self.app.close()


def wait_until(condition: Callable[[], bool], *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"did not come true in {seconds} s"
        time.sleep(0.02)


def message(number: int) -> dict[str, Any]:
    """What Celery hands to the channel, as far as the channel looks at it."""
    body = base64.b64encode(json.dumps([[], {"number": number}, {}]).encode()).decode()
    return {
        "body": body,
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"task": "ring", "id": f"id-{number}"},
        "properties": {
            "body_encoding": "base64",
            "delivery_tag": f"tag-{number}",
            "delivery_info": {"exchange": "", "routing_key": "bells"},
        },
    }


def number_of(claimed: dict[str, Any]) -> int:
    return int(claimed["headers"]["id"].removeprefix("id-"))


@pytest.fixture
def bells(tmp_path: Path) -> Iterator[Bells]:
    bells = Bells(tmp_path)
    yield bells
    bells.stop()


OpenChannel = Callable[..., Channel]


@pytest.fixture
def open_channel(tmp_path: Path) -> Iterator[OpenChannel]:
    connections = []

    def open_one(**options: Any) -> Channel:
        settings = broker_settings(tmp_path)
        connection = Connection(
            settings["broker_url"], transport_options=settings["broker_transport_options"] | options
        )
        connections.append(connection)
        channel = connection.channel()
        assert isinstance(channel, Channel)
        return channel

    yield open_one
    for connection in connections:
        connection.release()


# --- with real workers -----------------------------------------------------------------------------


def test_an_idle_worker_runs_a_message_once_and_within_a_second(bells: Bells) -> None:
    bells.start_worker()
    bells.ring(1)  # the first one also imports and forks
    wait_until(lambda: bells.rung() == [1], seconds=10)

    sent_at = time.time()
    bells.ring(2)
    wait_until(lambda: bells.rung() == [1, 2], seconds=5)

    ran_at = float((bells.folder / "rung").read_text().splitlines()[1].split()[2])
    assert ran_at - sent_at < 1.0
    assert bells.waiting() == []
    assert bells.rejected() == []


def test_torn_and_garbage_files_are_set_aside_and_the_worker_goes_on(bells: Bells) -> None:
    queue = bells.folder / "broker/queues/bells"
    queue.mkdir(parents=True)
    whole = json.dumps(message(1)).encode()
    (queue / "0-torn.msg").write_bytes(whole[: len(whole) // 2])
    (queue / "1-empty.msg").write_bytes(b"")
    (queue / "2-garbage.msg").write_bytes(os.urandom(512))
    (queue / "3-list.msg").write_bytes(b"[1, 2]")
    bells.ring(7)
    worker = bells.start_worker()
    wait_until(lambda: bells.rung() == [7], seconds=10)

    set_aside = sorted(path.name.rsplit("-", 1)[1] for path in bells.rejected())
    assert set_aside == ["empty.msg", "garbage.msg", "list.msg", "torn.msg"]
    bells.ring(8)
    wait_until(lambda: bells.rung() == [7, 8], seconds=10)
    assert worker.poll() is None
    assert bells.waiting() == []


def test_what_waits_while_a_killed_worker_is_replaced_runs_exactly_once(bells: Bells) -> None:
    first = bells.start_worker(pool="solo")
    bells.app.send_task("hang")
    wait_until((bells.folder / "hanging").exists, seconds=10)
    for number in range(20):
        bells.ring(number)
    assert len(bells.waiting()) == 20  # a solo worker that hangs takes nothing more
    first.send_signal(signal.SIGKILL)
    assert first.wait(10) == -signal.SIGKILL

    bells.start_worker()
    wait_until(lambda: len(bells.rung()) >= 20, seconds=20)
    time.sleep(0.3)  # three looks of the worker: time for a second run to show
    assert sorted(bells.rung()) == list(range(20))
    assert bells.waiting() == []


def test_a_worker_has_no_pool_processes_whose_death_could_wedge_it(bells: Bells) -> None:
    """See the note on threads in the broker; processes are asked for, and threads are what is started."""
    bells.start_worker(pool="prefork")
    bells.app.send_task("whoami")
    wait_until((bells.folder / "whoami").exists, seconds=10)
    assert (bells.folder / "whoami").read_text() == str(bells.workers[0].pid)


def test_two_workers_on_one_folder_run_every_message_once(bells: Bells) -> None:
    bells.start_worker()
    bells.start_worker()
    for number in range(300):
        bells.ring(number)
    wait_until(lambda: len(bells.rung()) >= 300, seconds=30)
    time.sleep(0.3)
    assert sorted(bells.rung()) == list(range(300))
    assert bells.waiting() == []


def test_a_worker_with_its_hands_full_takes_the_next_message_as_soon_as_one_is_done(bells: Bells) -> None:
    bells.start_worker()  # late acknowledgement, two threads, one message each
    bells.ring(0)
    wait_until(lambda: bells.rung() == [0], seconds=10)
    began = time.monotonic()
    for number in range(1, 41):
        bells.ring(number)
    wait_until(lambda: len(bells.rung()) >= 41, seconds=60)
    # Celery acknowledges between two waits for messages, and waits two seconds each time if it is let.
    assert time.monotonic() - began < 4.0
    assert sorted(bells.rung()) == list(range(41))


def test_a_worker_asked_to_end_finishes_what_it_runs_and_puts_back_what_it_only_holds(bells: Bells) -> None:
    worker = bells.start_worker()
    for _ in range(2):  # both threads
        bells.app.send_task("slow")
    wait_until((bells.folder / "slow-began").exists, seconds=10)
    worker.terminate()
    bells.ring(1)
    assert worker.wait(20) == 0
    assert (bells.folder / "slow-ended").exists()
    assert len(bells.rung()) + len(bells.waiting()) == 1  # run or kept, not lost


def test_an_idle_worker_ends_soon_after_sigterm(bells: Bells) -> None:
    worker = bells.start_worker()
    began = time.monotonic()
    worker.terminate()
    assert worker.wait(10) == 0
    assert time.monotonic() - began < 3.0


# --- the channel alone -----------------------------------------------------------------------------


def test_messages_come_out_oldest_first_over_several_looks_into_the_folder(
    open_channel: OpenChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesystem_broker, "NAMES_KEPT", 3)
    channel = open_channel()
    for number in range(10):
        channel._put("bells", message(number))
    assert [number_of(channel._get("bells")) for _ in range(10)] == list(range(10))
    with pytest.raises(Empty):
        channel._get("bells")


def test_two_channels_that_listed_the_same_messages_never_both_get_one(open_channel: OpenChannel) -> None:
    first, second = open_channel(), open_channel()
    for number in range(6):
        first._put("bells", message(number))
    got = [number_of(first._get("bells"))]
    got.append(number_of(second._get("bells")))  # lists 1…5, which the first has listed too
    got += [number_of(channel._get("bells")) for channel in (first, second, first, second)]
    assert sorted(got) == list(range(6))
    for channel in (first, second):
        with pytest.raises(Empty):
            channel._get("bells")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda m: m.pop("properties"), id="no properties"),
        pytest.param(lambda m: m["properties"].pop("delivery_tag"), id="no delivery tag"),
        pytest.param(lambda m: m.update(body="a"), id="body is no base64"),
        pytest.param(lambda m: m.update(body=7), id="body is a number"),
        pytest.param(lambda m: m.update(headers=None), id="no headers"),
        pytest.param(lambda m: m["headers"].pop("task"), id="no task"),
        pytest.param(lambda m: m["headers"].update(id=5), id="id is a number"),
        pytest.param(lambda m: m.update(padding="x" * filesystem_broker.MAX_MESSAGE_BYTES), id="too long"),
    ],
)
def test_json_that_is_no_message_is_set_aside(
    open_channel: OpenChannel, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    channel = open_channel()
    wrong = message(1)
    change(wrong)
    channel._put("bells", wrong)
    channel._put("bells", message(2))
    assert number_of(channel._get("bells")) == 2
    assert len(list((tmp_path / "broker/rejected").iterdir())) == 1
    assert list((tmp_path / "broker/queues/bells").iterdir()) == []


def test_a_folder_named_like_a_message_is_set_aside(open_channel: OpenChannel, tmp_path: Path) -> None:
    (tmp_path / "broker/queues/bells/0.msg").mkdir(parents=True)
    channel = open_channel()
    channel._put("bells", message(1))
    assert number_of(channel._get("bells")) == 1
    assert [path.is_dir() for path in (tmp_path / "broker/rejected").iterdir()] == [True]


def test_rejected_files_are_bounded(
    open_channel: OpenChannel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesystem_broker, "MAX_REJECTED", 2)
    queue = tmp_path / "broker/queues/bells"
    queue.mkdir(parents=True)
    for number in range(5):
        (queue / f"{number}.msg").write_bytes(b"{")
    with pytest.raises(Empty):
        open_channel()._get("bells")
    assert len(list((tmp_path / "broker/rejected").iterdir())) == 2
    assert list(queue.iterdir()) == []


def test_a_half_written_message_is_not_seen_and_is_removed_only_when_its_writer_must_be_dead(
    open_channel: OpenChannel, tmp_path: Path
) -> None:
    queue = tmp_path / "broker/queues/bells"
    queue.mkdir(parents=True)
    fresh, stale = queue / "1.unfinished", queue / "0.unfinished"
    for path in (fresh, stale):
        path.write_bytes(b'{"body": ')
    an_hour_and_a_bit_ago = time.time() - filesystem_broker.STALE_SECONDS - 5
    os.utime(stale, (an_hour_and_a_bit_ago, an_hour_and_a_bit_ago))
    with pytest.raises(Empty):
        open_channel()._get("bells")
    assert list(queue.iterdir()) == [fresh]
    assert not (tmp_path / "broker/rejected").exists()


def test_a_full_queue_drops_new_messages_says_so_once_and_takes_them_again_when_there_is_room(
    open_channel: OpenChannel,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filesystem_broker, "FULL_SECONDS", 0.0)
    channel = open_channel(max_waiting=3)
    for number in range(6):
        channel._put("bells", message(number))
    channel._put("other", message(9))  # each queue has its own bound
    assert channel._size("bells") == 3
    assert channel._size("other") == 1
    assert [record.getMessage() for record in caplog.records] == [
        "Queue bells holds 3 messages; new ones are dropped"
    ]
    assert number_of(channel._get("bells")) == 0
    channel._put("bells", message(6))
    assert [number_of(channel._get("bells")) for _ in range(3)] == [1, 2, 6]


@pytest.mark.parametrize("name", ["", ".", "..", "../rejected", "a/b", "a\\b", "a\0b", ".hidden", "q" * 101])
def test_a_queue_name_that_could_lead_out_of_the_folder_is_refused(
    open_channel: OpenChannel, tmp_path: Path, name: str
) -> None:
    channel = open_channel()
    with pytest.raises(ChannelError, match="not a name for a queue"):
        channel._put(name, message(1))
    assert list(tmp_path.iterdir()) == []


def test_a_refusing_file_system_is_an_operational_error_for_the_publisher(bells: Bells) -> None:
    (bells.folder / "broker").write_text("a file where the folder should be")
    with pytest.raises(OperationalError, match="cannot put a message"):
        bells.app.send_task("ring", kwargs={"number": 1}, retry=False)


def test_a_folder_that_cannot_be_listed_is_logged_and_looks_empty(
    open_channel: OpenChannel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broker/queues").mkdir(parents=True)
    (tmp_path / "broker/queues/bells").write_text("a file where the folder should be")
    channel = open_channel()
    for _ in range(5):
        with pytest.raises(Empty):
            channel._get("bells")
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("Cannot list ")


def test_purging_removes_what_waits_and_says_how_many(open_channel: OpenChannel, tmp_path: Path) -> None:
    channel = open_channel()
    for number in range(4):
        channel._put("bells", message(number))
    assert channel._purge("bells") == 4
    assert channel._purge("never-used") == 0
    assert list((tmp_path / "broker/queues/bells").iterdir()) == []
    with pytest.raises(Empty):
        channel._get("bells")
