"""The official client works against the simulator, over TLS, and what it loses is in the journal."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.simulator_process import SimulatorProcess, Tls

Start = Callable[..., SimulatorProcess]
MODEL = "fal-ai/veo3.1/fast"

# The client reads its host when it is imported and speaks https only, hence a process of its own.
PRELUDE = """
import json, sys
import fal_client
from fal_client import client as module
"""


@pytest.fixture
def secure(new_simulator: Start, tls: Tls) -> SimulatorProcess:
    return new_simulator(seconds=0.6, tls=tls)


def run_client(simulator: SimulatorProcess, script: str) -> Any:
    """Runs the client in a process; what the script prints last is JSON."""
    assert simulator.tls is not None
    environment = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()} | {
        "FAL_KEY": "key-id:key-secret",
        "FAL_QUEUE_RUN_HOST": f"127.0.0.1:{simulator.port}",
        "SSL_CERT_FILE": str(simulator.tls.authority),
    }
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script],
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode().splitlines()[-1])


def test_submit_status_and_result_are_read_by_the_official_client(secure: SimulatorProcess) -> None:
    seen = run_client(
        secure,
        f"""
handle = fal_client.submit({MODEL!r}, {{"prompt": "a cat", "duration": "4s", "seed": 7}})
words = []
for event in handle.iter_events(with_logs=True, interval=0.05):
    words.append(type(event).__name__)
last = event
print(json.dumps({{"id": handle.request_id, "words": sorted(set(words)), "first": words[0], "last": words[-1],
                  "error": last.error, "metrics": last.metrics, "logs": len(last.logs),
                  "result": handle.get()}}))
""",
    )
    assert seen["words"] == ["Completed", "InProgress", "Queued"]
    assert (seen["first"], seen["last"], seen["error"]) == ("Queued", "Completed", None)
    assert seen["metrics"] == {"inference_time": 0.4}
    assert seen["logs"] == 3
    assert seen["result"]["seed"] == 7
    assert seen["result"]["video"]["url"] == f"{secure.url}/files/{seen['id']}/video.mp4"
    (job,) = secure.jobs()
    assert (job["request_id"], job["outcome"], job["billed"], job["units"], job["cost"]) == (
        seen["id"],
        "success",
        True,
        "4",
        "0.60",
    )


def test_a_failed_job_raises_with_the_models_own_error(secure: SimulatorProcess) -> None:
    seen = run_client(
        secure,
        f"""
handle = fal_client.submit({MODEL!r}, {{"prompt": "a cat [sim: seconds=0; refused_output]"}})
status = handle.status()
try:
    handle.get()
except fal_client.FalClientHTTPError as error:
    print(json.dumps({{"status": status.error_type, "code": error.status_code, "type": error.error_type,
                      "detail": error.message}}))
""",
    )
    assert (seen["status"], seen["code"], seen["type"]) == (
        "content_policy_violation",
        422,
        "content_policy_violation",
    )
    assert [part["type"] for part in seen["detail"]] == ["content_policy_violation"]


def test_a_waiting_job_is_cancelled_by_the_official_client(secure: SimulatorProcess) -> None:
    run_client(
        secure,
        f"""
handle = fal_client.submit({MODEL!r}, {{"prompt": "a cat [sim: queue_forever]"}})
handle.cancel()
print("null")
""",
    )
    (job,) = secure.jobs()
    assert (job["outcome"], job["billed"], job["cost"]) == ("cancelled", False, "0.00")


@pytest.mark.parametrize("attempts", [1, 3])
def test_every_post_of_the_client_whose_answer_is_lost_is_one_job(
    secure: SimulatorProcess, attempts: int
) -> None:
    seen = run_client(
        secure,
        f"""
module.MAX_ATTEMPTS = {attempts}
try:
    fal_client.submit({MODEL!r}, {{"prompt": "a cat [sim: drop_after_accept; marker=lost]"}})
except Exception as error:
    print(json.dumps(type(error).__name__))
""",
    )
    assert seen in ("ReadError", "RemoteProtocolError")
    assert (secure.count(marker="lost"), secure.posts()) == (attempts, attempts)
    summary = secure.request("GET", "/_sim/summary").json
    assert summary["duplicates_by_marker"] == ({} if attempts == 1 else {"lost": attempts})
