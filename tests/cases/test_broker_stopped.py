"""C50, second half: the broker stops while people order, and comes back."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import wait_for
from tests.product_process import ProductProcess
from tests.simulator_process import free_port

ORDERS = 40
AT_ONCE = 6
SLOWEST_SECONDS = (
    3.0  # of an order on a busy machine; a publish that waits for a dead broker takes far longer
)
DONE_SECONDS = 60.0


class RedisProcess:
    """A Redis of its own, which can be stopped without hurting anybody else's."""

    def __init__(self, folder: Path, binary: str) -> None:
        self.folder, self.binary, self.port = folder, binary, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        quiet = subprocess.DEVNULL
        command = [
            self.binary,
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(self.folder),
        ]
        self.process = subprocess.Popen(command, stdout=quiet, stderr=quiet, stdin=quiet)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def stopped_folder(product: ProductProcess) -> Iterator[None]:
    """The embedded broker without its folder: nothing can be written or read there."""
    folder = product.data_dir / "broker"
    away = folder.with_name("broker-away")
    wait_for(folder.exists, seconds=30)  # the first process that needs it makes it
    folder.rename(away)
    folder.write_text("a file where the broker's folder should be")
    try:
        yield
    finally:
        folder.unlink()
        away.rename(folder)


@contextmanager
def stopped_redis(redis: RedisProcess) -> Iterator[None]:
    redis.stop()
    try:
        yield
    finally:
        redis.start()


def order_many(product: ProductProcess, prompt: str) -> tuple[list[str], list[float]]:
    """Orders over a few connections at once; their ids and how long each answer took."""

    def order_one(number: int) -> tuple[str, float]:
        began = time.monotonic()
        client_id = product.submit(prompt=f"{prompt} {number}", seconds=4)
        return client_id, time.monotonic() - began

    with ThreadPoolExecutor(AT_ONCE) as threads:
        done = list(threads.map(order_one, range(ORDERS)))
    return [client_id for client_id, _ in done], [seconds for _, seconds in done]


def wait_until_all_completed(product: ProductProcess, client_ids: list[str]) -> None:
    until = time.monotonic() + DONE_SECONDS
    states: dict[str, str] = {}
    while time.monotonic() < until:
        reply = product.api("GET", f"/api/videos?ids={','.join(client_ids)}")
        states = {entry["id"]: entry.get("state", entry.get("code")) for entry in reply.json["results"]}
        if set(states.values()) == {"completed"}:
            return
        time.sleep(0.3)
    raise AssertionError(f"{sorted(states.values())}\n{product.logs()}")


def assert_orders_survive(product: ProductProcess, stopped: Any) -> None:
    assert product.simulator is not None
    jobs = product.simulator.count()
    prompt = f"while the broker is away {makers.new_client_id()}"
    before = product.api("GET", "/api/account").json["balance"]
    with stopped:
        client_ids, seconds = order_many(product, prompt)
        assert max(seconds) < SLOWEST_SECONDS, sorted(seconds)[-5:]
        reply = product.api("GET", f"/api/videos?ids={','.join(client_ids)}")
        assert {entry["charge"]["state"] for entry in reply.json["results"]} <= {"charged", "settled"}
        assert product.request("GET", "/readyz").status == 200
    product.start_missing()  # as a process manager does with what ended
    wait_until_all_completed(product, client_ids)
    assert product.simulator.count() - jobs == ORDERS
    after = product.api("GET", "/api/account").json["balance"]
    spent = int(before.replace(".", "")) - int(after.replace(".", ""))
    assert spent == ORDERS * 2_080_000


def test_orders_are_taken_quickly_while_the_broker_is_stopped_and_run_once_it_is_back(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if not os.environ.get("BROKER_URL"):
        product: ProductProcess = request.getfixturevalue("product")
        assert_orders_survive(product, stopped_folder(product))
        return
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("needs redis-server for a Redis of its own that can be stopped")
    redis = RedisProcess(tmp_path, binary)
    redis.start()
    try:
        with ProductProcess(tmp_path / "product", broker_url=redis.url) as own:
            assert_orders_survive(own, stopped_redis(redis))
            own.assert_invariants()
    finally:
        redis.stop()


def test_orders_run_by_the_schedule_alone_when_no_bell_is_ever_heard(product: ProductProcess) -> None:
    """The worker is away while orders come, and whatever was rung meanwhile is thrown away."""
    product.stop("worker")
    client_ids, _ = order_many(product, f"without a bell {makers.new_client_id()}")
    if not os.environ.get("BROKER_URL"):
        for message in (product.data_dir / "broker").rglob("*.msg"):
            message.unlink()
    product.start("worker")
    wait_until_all_completed(product, client_ids)
