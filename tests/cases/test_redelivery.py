"""C48: Redis gives a message to a worker a second time while the first still sends."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.cases.evidence import wait_for
from tests.product_process import ProductProcess

VISIBLE_AGAIN_SECONDS = 5
SUBMIT_SECONDS = 12
DISPATCH = "videos.tasks.dispatch_due"
# What every worker does on its round; at its usual pace the test would have to wait for more than a minute.
REPEAT_OVERDUE = """
from config.celery import app
with app.connection_for_read() as connection:
    connection.default_channel.qos.restore_visible()
"""

pytestmark = pytest.mark.redis


class Unacknowledged:
    """What Redis has given to workers and not been told the end of, as kombu keeps it."""

    def __init__(self, url: str) -> None:
        self.redis: Any = redis.Redis.from_url(url, decode_responses=True)

    def overdue(self) -> list[str]:
        """Messages that were given away longer ago than the visibility timeout."""
        return self.redis.zrange("unacked_index", 0, time.time() - VISIBLE_AGAIN_SECONDS, byscore=True)

    def task_of(self, tag: str) -> str:
        message, *_ = json.loads(self.redis.hget("unacked", tag))
        return message["headers"]["task"]

    def waiting(self) -> list[dict[str, Any]]:
        """Messages of the queue that were given away before and wait to be taken again."""
        messages = map(json.loads, self.redis.lrange("dispatch", 0, -1))
        return [message for message in messages if message["headers"].get("redelivered")]


def test_a_message_that_is_given_out_again_during_its_submit_makes_one_job_and_one_charge(
    tmp_path: Path,
) -> None:
    short = {"BROKER_VISIBILITY_TIMEOUT": str(VISIBLE_AGAIN_SECONDS)}
    with ProductProcess(tmp_path, env=short) as product:
        assert product.broker_url is not None and product.simulator is not None
        given = Unacknowledged(product.broker_url)
        client_id = product.submit(prompt=f"a cat [sim: delay={SUBMIT_SECONDS} webhook_none]", seconds=4)
        began = time.monotonic()
        (tag,) = wait_for(given.overdue, seconds=SUBMIT_SECONDS)
        assert given.task_of(tag) == DISPATCH
        product.python(REPEAT_OVERDUE)
        assert given.overdue() == []  # it is in the queue again, or with the worker's other process
        wait_for(lambda: not given.waiting())
        # All that while the first sender still waits for its answer, and the job has been taken.
        assert time.monotonic() - began < SUBMIT_SECONDS
        assert product.video(client_id)["state"] == "submitting"
        assert (product.simulator.count(), product.simulator.posts()) == (1, 1)
        ended = product.wait_until(client_id, "completed")
        assert (ended["charge"]["state"], ended["charge"]["amount"]) == ("settled", "2.080000")
        assert (product.simulator.count(), product.simulator.posts()) == (1, 1)
        lines = product.api("GET", "/api/account/transfers").json["results"]
        about = [line["kind"] for line in lines if line["task"] == client_id]
        assert about.count("charge") == 1
        product.assert_invariants()
