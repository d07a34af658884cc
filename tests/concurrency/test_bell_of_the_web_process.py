"""The bell that a request rings arrives at the broker of the settings, from the thread that publishes."""

import time
from pathlib import Path

import redis

from tests.product_process import ProductProcess

SECONDS = 20.0


def bells(product: ProductProcess) -> int:
    """Messages that wait for a dispatcher."""
    if product.broker_url:
        with redis.Redis.from_url(product.broker_url) as broker:
            return int(broker.llen("dispatch"))
    return len(list((product.data_dir / "broker" / "queues" / "dispatch").glob("*.msg")))


def test_a_request_rings_the_bell_of_the_configured_broker(tmp_path: Path) -> None:
    product = ProductProcess(tmp_path)
    try:
        product.prepare()
        product.start("web")  # alone: nobody takes the bell, and no schedule rings another one
        before = bells(product)
        product.submit()
        until = time.monotonic() + SECONDS
        while bells(product) == before and time.monotonic() < until:
            time.sleep(0.05)
        assert bells(product) == before + 1, product.logs()
        assert "doorbell_silent" not in product.logs()
    finally:
        product.close()
