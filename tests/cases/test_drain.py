"""SIGTERM drains: a deploy in the middle of a paid POST makes no unknown, and claims nothing new."""

import time
from concurrent.futures import ThreadPoolExecutor

from tests.cases.evidence import wait_for
from tests.product_process import STOP_SECONDS, ProductProcess

ANSWER_SECONDS = 4.0  # the provider takes the job at once and answers so much later
STOPPING = "Warm shutdown"  # what a worker says when SIGTERM reaches it
TURN_SECONDS = 0.5  # in which the worker, having said that it stops, ends the turn of its loop


def attempts(product: ProductProcess, client_id: str) -> list[str]:
    """The outcomes of a video's attempts, as they are in the database."""
    told = product.python(
        "from videos.models import Attempt, VideoTask\n"
        f"task = VideoTask.objects.get(client_id={client_id!r})\n"
        "found = Attempt.objects.filter(task_id=task.pk).order_by('number')\n"
        "print(*found.values_list('outcome', flat=True))"
    )
    return told.split()


def test_a_worker_that_is_told_to_stop_records_the_answer_it_waits_for_and_takes_nothing_new(
    product: ProductProcess,
):
    simulator = product.simulator
    assert simulator is not None
    jobs, posts = simulator.count(), simulator.posts()
    # No call-back: it would tell of the job before the answer does.
    simulator.add_fault({"delay": ANSWER_SECONDS, "webhook": "none"}, times=1)
    under_way = product.submit(prompt="a ship that is being loaded")
    wait_for(lambda: simulator.count() == jobs + 1, seconds=20)

    log = product.data_dir / "worker.log"
    said = log.read_text().count(STOPPING)
    with ThreadPoolExecutor(1) as deploy:
        begun = time.monotonic()
        stopped = deploy.submit(product.stop, "worker")
        wait_for(lambda: log.read_text().count(STOPPING) > said, seconds=ANSWER_SECONDS)
        time.sleep(TURN_SECONDS)
        assert product.video(under_way)["state"] == "submitting"  # the answer is still on its way
        later = product.submit(prompt="a ship that comes too late")
        stopped.result(STOP_SECONDS + 10)
    assert time.monotonic() - begun < STOP_SECONDS  # it ended by itself, and was not killed

    assert product.video(under_way)["state"] == "processing"
    assert attempts(product, under_way) == ["accepted"]
    assert product.video(later)["state"] == "submitting"
    assert attempts(product, later) == []
    assert (simulator.count(), simulator.posts()) == (jobs + 1, posts + 1)

    product.start("worker")
    for client_id in (under_way, later):
        assert product.wait_until(client_id, "completed")["charge"]["state"] == "settled"
        assert attempts(product, client_id) == ["accepted"]
    assert (simulator.count(), simulator.posts()) == (jobs + 2, posts + 2)
