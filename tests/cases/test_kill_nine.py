"""C47: worker and beat are killed again and again, with work in every state."""

import random
import time
from pathlib import Path

from tests.cases.conftest import SHORT_LEASES
from tests.cases.evidence import wait_for
from tests.product_process import ProductProcess
from tests.simulator_process import SimulatorProcess

TASKS = 30
ORDER_PAUSE_SECONDS = 0.35  # between two orders
JOB_SECONDS = 2.0
KILLS = 5
SEED = 47
END_SECONDS = 60.0
KEYS = """
from core.ids import webhook_key
from videos.models import Attempt, VideoTask
for task in VideoTask.objects.all():
    print(task.client_id, webhook_key(task.pk), Attempt.objects.filter(task_id=task.pk).count())
"""


def order_and_kill(product: ProductProcess, provider: SimulatorProcess) -> list[str]:
    """Orders over some ten seconds, of which every fifth loses its answer, with kills in between."""
    chance = random.Random(SEED)
    killed_at = set(chance.sample(range(2, TASKS), KILLS))
    client_ids = []
    for number in range(TASKS):
        is_killed = number in killed_at
        # A kill meets a sender that waits for its answer; half of those jobs are found by no call-back.
        manner = "delay=4" if is_killed else "drop_after_accept" if number % 5 == 4 else "delay=0.3"
        call = " webhook_none" if is_killed and number % 2 else ""
        posts = provider.posts()
        client_ids.append(product.submit(prompt=f"cat {number} [sim: {manner}{call}]", seconds=4))
        time.sleep(ORDER_PAUSE_SECONDS)
        if is_killed:
            wait_for(lambda posts=posts: provider.posts() > posts)
            for name in ("worker", "beat") if chance.random() < 0.5 else ("worker",):
                product.kill(name)
            product.start_missing()
    return client_ids


def states_of(product: ProductProcess, client_ids: list[str]) -> dict[str, str]:
    reply = product.api("GET", f"/api/videos?ids={','.join(client_ids)}")
    return {entry["id"]: entry["state"] for entry in reply.json["results"]}


def test_a_worker_killed_again_and_again_leaves_no_task_behind_and_runs_none_twice(tmp_path: Path) -> None:
    simulator = SimulatorProcess(tmp_path / "provider", seconds=JOB_SECONDS).start()
    try:
        with ProductProcess(tmp_path / "product", simulator=simulator, env=SHORT_LEASES) as product:
            client_ids = order_and_kill(product, simulator)
            told = [line.split() for line in product.python(KEYS).splitlines()]
            keys = {client_id: key for client_id, key, _ in told}
            assert set(keys) == set(client_ids)

            def executed() -> set[str]:
                return {job["marker"] for job in simulator.jobs()}

            def is_over(client_id: str, state: str) -> bool:
                """Completed, or unknown with no job that its contract could still find."""
                return state == "completed" or (state == "unknown" and keys[client_id] not in executed())

            until = time.monotonic() + END_SECONDS
            states = states_of(product, client_ids)
            while not all(is_over(*item) for item in states.items()) and time.monotonic() < until:
                time.sleep(0.5)
                states = states_of(product, client_ids)
            # A task whose job ran has its video. The others were killed between attempt and first byte.
            assert {states[client_id] for client_id in client_ids} <= {"completed", "unknown"}, states
            completed = {keys[client_id] for client_id, state in states.items() if state == "completed"}
            assert completed == executed()
            assert len(completed) > TASKS / 2
            assert simulator.count() == len(completed)
            attempts = [line.split()[2] for line in product.python(KEYS).splitlines()]
            assert attempts == ["1"] * TASKS  # none was sent again
            assert len(product.api("GET", "/api/account/transfers?limit=100").json["results"]) >= TASKS
            product.assert_invariants()
    finally:
        simulator.stop()
