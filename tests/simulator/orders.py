"""Short ways to order from the simulator as a client of the provider does, without its retries."""

from typing import Any

from simulator.directives import read_directives
from simulator.jobs import Job
from tests.simulator_process import Reply, SimulatorProcess

KEY = "key-id:key-secret"
ENDPOINT = "fal-ai/veo3.1/fast"


def submit(
    simulator: SimulatorProcess,
    prompt: str = "a cat on a roof",
    *,
    endpoint: str = ENDPOINT,
    key: str | None = KEY,
    webhook: str | None = None,
    timeout: float = 30,
    **model_input: Any,
) -> Reply:
    """One POST."""
    query = "" if webhook is None else f"?fal_webhook={webhook}"
    body = {"prompt": prompt, **model_input}
    return simulator.request("POST", f"/{endpoint}{query}", body=body, key=key, timeout=timeout)


def accepted(simulator: SimulatorProcess, prompt: str = "a cat on a roof", **options: Any) -> dict[str, Any]:
    """The body of a submit that must have been taken."""
    reply = submit(simulator, prompt, **options)
    assert reply.status == 200, reply.body
    body: dict[str, Any] = reply.json
    return body


def read(simulator: SimulatorProcess, address: str, *, timeout: float = 30) -> Reply:
    """One authorised GET."""
    return simulator.request("GET", address, key=KEY, timeout=timeout)


def make_job(prompt: str = "", **fields: object) -> Job:
    """A job received at 100, three seconds in the queue and six at work."""
    values: dict[str, object] = {
        "request_id": "r",
        "endpoint": "fal-ai/veo3.1",
        "key_digest": "k",
        "webhook_url": None,
        "marker": "",
        "input": {"duration": "4s", "generate_audio": False},
        "directives": read_directives(prompt),
        "received_at": 100.0,
        "queue_seconds": 3.0,
        "run_seconds": 6.0,
    }
    return Job(**{**values, **fields})  # type: ignore[arg-type]
