"""Webhooks: signed, repeated until taken, over restarts too; and everything that can be wrong with them."""

import base64
import hashlib
import itertools
import json
import threading
import time
from collections.abc import Callable

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from simulator.webhooks import pause_after
from tests.simulator.conftest import Received, Receiver, wait_until
from tests.simulator.orders import KEY, accepted, read, submit
from tests.simulator_process import SimulatorProcess

Start = Callable[..., SimulatorProcess]


def verify(simulator: SimulatorProcess, call: Received) -> None:
    """Checks a call as the provider's documentation tells its receivers to.

    Raises:
        InvalidSignature: nobody who holds the key signed this.
    """
    (key,) = simulator.request("GET", "/.well-known/jwks.json").json["keys"]
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
    names = ("Request-Id", "User-Id", "Timestamp")
    lines = [call.headers[f"X-Fal-Webhook-{name}"] for name in names]
    message = "\n".join([*lines, hashlib.sha256(call.body).hexdigest()]).encode()
    public.verify(bytes.fromhex(call.headers["X-Fal-Webhook-Signature"]), message)


def test_a_call_is_signed_and_tells_the_result(simulator: SimulatorProcess, receiver: Receiver) -> None:
    body = accepted(simulator, webhook=f"{receiver.url}/hooks/fal/abc", seed=3)
    (call,) = receiver.wait(1)
    verify(simulator, call)
    assert call.path == "/hooks/fal/abc"
    assert call.headers["X-Fal-Webhook-Request-Id"] == body["request_id"]
    assert abs(int(call.headers["X-Fal-Webhook-Timestamp"]) - time.time()) < 5
    assert json.loads(call.body) == {
        "request_id": body["request_id"],
        "gateway_request_id": body["request_id"],
        "status": "OK",
        "payload": read(simulator, body["response_url"]).json,
    }
    wait_until(lambda: simulator.deliveries()[0]["ended_at"] is not None)
    (delivery,) = simulator.deliveries()
    assert (delivery["attempts"], delivery["last_status"]) == (1, 200)
    assert [job["marker"] for job in simulator.jobs()] == ["abc"]


def test_a_changed_body_does_not_verify(simulator: SimulatorProcess, receiver: Receiver) -> None:
    accepted(simulator, webhook=f"{receiver.url}/h")
    (call,) = receiver.wait(1)
    call.body += b" "
    with pytest.raises(InvalidSignature):
        verify(simulator, call)


def test_a_failure_is_told_as_an_error(simulator: SimulatorProcess, receiver: Receiver) -> None:
    accepted(simulator, "a cat [sim: fail=overheated fail_code=503]", webhook=f"{receiver.url}/h")
    (call,) = receiver.wait(1)
    body = json.loads(call.body)
    assert (body["status"], body["error"], body["payload"]) == (
        "ERROR",
        "Invalid status code: 503",
        {"detail": "overheated"},
    )


def test_the_call_comes_when_the_job_is_over(new_simulator: Start, receiver: Receiver) -> None:
    simulator = new_simulator(seconds=0.5)
    accepted(simulator, webhook=f"{receiver.url}/h")
    assert receiver.received == []
    (call,) = receiver.wait(1)
    (job,) = simulator.jobs()
    assert job["ended_at"] == pytest.approx(job["received_at"] + 0.5)
    assert call.at >= job["ended_at"]


def test_a_call_is_repeated_until_it_is_taken(simulator: SimulatorProcess, receiver: Receiver) -> None:
    receiver.statuses = [500, 404, 302]
    accepted(simulator, webhook=f"{receiver.url}/h")
    calls = receiver.wait(4)
    pauses = [later.at - earlier.at for earlier, later in itertools.pairwise(calls)]
    assert all(pause >= least for pause, least in zip(pauses, (0.5, 1.0, 2.0), strict=True)), pauses
    assert len({call.body for call in calls}) == 1
    wait_until(lambda: simulator.deliveries()[0]["ended_at"] is not None)
    assert simulator.deliveries()[0]["attempts"] == 4


def test_pauses_double_up_to_half_a_minute() -> None:
    assert [pause_after(attempts) for attempts in range(1, 11)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]


def test_undelivered_calls_go_on_after_a_kill(simulator: SimulatorProcess, receiver: Receiver) -> None:
    receiver.statuses = [500]
    accepted(simulator, webhook=f"{receiver.url}/h")
    receiver.wait(1)
    wait_until(lambda: simulator.deliveries()[0]["attempts"] == 1)
    simulator.restart(kill=True)
    calls = receiver.wait(2)
    verify(simulator, calls[1])
    assert calls[0].body == calls[1].body


@pytest.mark.parametrize("directive", ["webhook=none", "webhook_none"])
def test_no_call_is_made_when_told_so(
    simulator: SimulatorProcess, receiver: Receiver, directive: str
) -> None:
    accepted(simulator, f"a cat [sim: {directive}]", webhook=f"{receiver.url}/first")
    accepted(simulator, webhook=f"{receiver.url}/second")
    assert [call.path for call in receiver.wait(1)] == ["/second"]
    assert [delivery["url"] for delivery in simulator.deliveries()] == [f"{receiver.url}/second"]


def test_ten_copies_one_after_the_other_or_at_once(simulator: SimulatorProcess, receiver: Receiver) -> None:
    receiver.pause = 0.3
    prompt = "a cat [sim: webhook_copies=10 webhook_concurrent]"
    accepted(simulator, prompt, webhook=f"{receiver.url}/h")
    calls = receiver.wait(10)
    assert len({call.body for call in calls}) == 1
    assert receiver.most_at_once >= 5
    wait_until(lambda: receiver.at_once == 0)
    receiver.pause, receiver.most_at_once = 0.0, 0
    accepted(simulator, "a cat [sim: webhook_copies=3 webhook_interval=0.3]", webhook=f"{receiver.url}/h")
    receiver.wait(13)
    assert receiver.most_at_once == 1


def test_a_call_can_come_before_the_submit_answer(simulator: SimulatorProcess, receiver: Receiver) -> None:
    answers: list[float] = []

    def order() -> None:
        submit(simulator, "a cat [sim: webhook_early delay=1]", webhook=f"{receiver.url}/h")
        answers.append(time.time())

    thread = threading.Thread(target=order)
    thread.start()
    (call,) = receiver.wait(1)
    assert answers == []
    thread.join()
    assert answers[0] - call.at > 0.7
    assert json.loads(call.body)["request_id"] == simulator.jobs()[0]["request_id"]
    assert len(simulator.deliveries()) == 1


def test_a_call_can_be_early_even_before_the_job_is_over(
    simulator: SimulatorProcess, receiver: Receiver
) -> None:
    body = accepted(
        simulator,
        "a cat [sim: webhook_early delay=0.01 queue_seconds=0 seconds=1.2]",
        webhook=f"{receiver.url}/h",
    )
    receiver.wait(1)
    assert read(simulator, body["status_url"]).json["status"] == "IN_PROGRESS"
    wait_until(lambda: simulator.jobs()[0]["outcome"] == "success")
    assert len(simulator.deliveries()) == 1


def test_calls_can_be_late_and_so_out_of_order(simulator: SimulatorProcess, receiver: Receiver) -> None:
    accepted(simulator, "a cat [sim: webhook_delay=0.6]", webhook=f"{receiver.url}/first")
    accepted(simulator, webhook=f"{receiver.url}/second")
    assert [call.path for call in receiver.wait(2)] == ["/second", "/first"]


def test_calls_can_contradict_each_other(simulator: SimulatorProcess, receiver: Receiver) -> None:
    accepted(simulator, "a cat [sim: webhook_statuses=ERROR|OK|ERROR]", webhook=f"{receiver.url}/h")
    calls = receiver.wait(3)
    assert [json.loads(call.body)["status"] for call in calls] == ["ERROR", "OK", "ERROR"]
    for call in calls:
        verify(simulator, call)
    assert simulator.jobs()[0]["outcome"] == "success"


def test_a_call_can_be_badly_signed(simulator: SimulatorProcess, receiver: Receiver) -> None:
    accepted(simulator, "a cat [sim: webhook_signature=bad]", webhook=f"{receiver.url}/h")
    (bad,) = receiver.wait(1)
    with pytest.raises(InvalidSignature):
        verify(simulator, bad)
    simulator.add_fault({"signature": "missing"}, on="webhook", times=1)
    accepted(simulator, webhook=f"{receiver.url}/h")
    assert "X-Fal-Webhook-Signature" not in receiver.wait(2)[1].headers
    accepted(simulator, webhook=f"{receiver.url}/h")
    verify(simulator, receiver.wait(3)[2])


def test_a_call_can_be_of_another_time(simulator: SimulatorProcess, receiver: Receiver) -> None:
    accepted(simulator, "a cat [sim: webhook_timestamp=-600]", webhook=f"{receiver.url}/h")
    (call,) = receiver.wait(1)
    verify(simulator, call)
    assert 595 < time.time() - int(call.headers["X-Fal-Webhook-Timestamp"]) < 610


def test_a_cancelled_job_is_told_too(simulator: SimulatorProcess, receiver: Receiver) -> None:
    body = accepted(simulator, "a cat [sim: queue_forever]", webhook=f"{receiver.url}/h")
    simulator.request("PUT", body["cancel_url"], key=KEY)
    (call,) = receiver.wait(1)
    assert json.loads(call.body)["error"] == "Invalid status code: 499"
