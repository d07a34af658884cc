"""The queue protocol: what each call answers when nothing goes wrong, and who may read what."""

from collections.abc import Callable

import pytest

from tests.simulator.orders import KEY, accepted, read, submit
from tests.simulator_process import SimulatorProcess

Start = Callable[..., SimulatorProcess]


def test_a_submit_answers_an_id_and_addresses_of_owner_and_app_only(simulator: SimulatorProcess) -> None:
    body = accepted(simulator)
    address = f"{simulator.url}/fal-ai/veo3.1/requests/{body['request_id']}"
    assert body == {
        "status": "IN_QUEUE",
        "request_id": body["request_id"],
        "gateway_request_id": body["request_id"],
        "response_url": address,
        "status_url": f"{address}/status",
        "cancel_url": f"{address}/cancel",
        "queue_position": 0,
    }


def test_the_public_address_is_the_one_handed_out(new_simulator: Start) -> None:
    simulator = new_simulator(public_url="http://simulator.test:1234/")
    body = accepted(simulator)
    address = f"http://simulator.test:1234/fal-ai/veo3.1/requests/{body['request_id']}"
    assert body["status_url"] == f"{address}/status"
    assert read(simulator, body["response_url"]).json["video"]["url"] == (
        f"http://simulator.test:1234/files/{body['request_id']}/video.mp4"
    )


def test_a_result_is_the_models_output_and_says_what_is_billed(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, duration="6s", seed=11)
    reply = read(simulator, body["response_url"])
    assert reply.status == 200
    assert reply.headers["x-fal-request-id"] == body["request_id"]
    assert reply.headers["x-fal-billable-units"] == "6"
    assert reply.json["seed"] == 11
    assert reply.json["video"]["content_type"] == "video/mp4"


def test_status_is_202_until_it_is_over(simulator: SimulatorProcess) -> None:
    waiting = accepted(simulator, "a cat [sim: queue_forever]")
    reply = read(simulator, waiting["status_url"])
    assert (reply.status, reply.json["status"], reply.json["queue_position"]) == (202, "IN_QUEUE", 3)
    running = accepted(simulator, "a cat [sim: run_forever queue_seconds=0 progress=40]")
    reply = read(simulator, running["status_url"] + "?logs=1")
    assert (reply.status, reply.json["status"], reply.json["progress"]) == (202, "IN_PROGRESS", 40.0)
    assert [line["message"] for line in reply.json["logs"]][:1] == ["Loading the model"]
    result = read(simulator, running["response_url"])
    assert (result.status, result.json["detail"]) == (400, "Request is still in progress")
    over = read(simulator, accepted(simulator)["status_url"])
    assert (over.status, over.json["status"], over.json["logs"]) == (200, "COMPLETED", None)
    assert "error" not in over.json


@pytest.mark.parametrize("word", ["succeed", "SUCCESS", " done ", "FAILURE"])
def test_any_word_can_be_the_status(simulator: SimulatorProcess, word: str) -> None:
    body = accepted(simulator, f'a cat [sim: status_word="{word}"]')
    assert read(simulator, body["status_url"]).json["status"] == word


def test_a_failure_is_completed_with_an_error_and_may_hold_any_character(
    simulator: SimulatorProcess,
) -> None:
    body = accepted(simulator, r'a cat [sim: fail="bad\u0000 and \u0001" error_type=internal_error]')
    status = read(simulator, body["status_url"])
    assert (status.status, status.json["status"]) == (200, "COMPLETED")
    assert (status.json["error"], status.json["error_type"]) == ("bad\x00 and \x01", "internal_error")
    result = read(simulator, body["response_url"])
    assert (result.status, result.json) == (
        500,
        {"detail": "bad\x00 and \x01", "error_type": "internal_error"},
    )
    assert result.headers["X-Fal-Error-Type"] == "internal_error"
    assert [(job["outcome"], job["billed"]) for job in simulator.jobs()] == [("error", False)]


@pytest.mark.parametrize(("billing", "billed", "units"), [("", False, "0"), ("; billed", True, "8")])
def test_a_withheld_output_is_a_typed_422_billed_or_not(
    simulator: SimulatorProcess, billing: str, billed: bool, units: str
) -> None:
    body = accepted(simulator, f"a cat [sim: refused_output{billing}]")
    result = read(simulator, body["response_url"])
    assert result.status == 422
    assert result.headers["X-Fal-Error-Type"] == "content_policy_violation"
    assert result.headers["x-fal-billable-units"] == units
    assert result.json["detail"][0]["type"] == "content_policy_violation"
    assert [job["billed"] for job in simulator.jobs()] == [billed]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({}, "missing"),
        ({"prompt": "  "}, "string_too_short"),
        ({"prompt": 5}, "string_type"),
        ({"prompt": "x" * 20_001}, "string_too_long"),
        ([], "model_type"),
        (b"{", "json_invalid"),
    ],
)
def test_bad_input_is_422_and_no_job_is_taken(simulator: SimulatorProcess, body: object, kind: str) -> None:
    reply = simulator.request("POST", "/fal-ai/veo3.1", body=body, key=KEY)
    assert (reply.status, reply.json["detail"][0]["type"]) == (422, kind)
    assert (simulator.count(), simulator.posts()) == (0, 1)


def test_a_model_of_images_wants_one(simulator: SimulatorProcess) -> None:
    reply = submit(simulator, endpoint="fal-ai/veo3.1/image-to-video")
    assert (reply.status, reply.json["detail"][0]["loc"]) == (422, ["body", "image_url"])
    endpoint = "fal-ai/veo3.1/image-to-video"
    assert submit(simulator, endpoint=endpoint, image_url="http://x.test/i.png").status == 200
    assert simulator.count() == 1


def test_an_address_without_an_app_is_404(simulator: SimulatorProcess) -> None:
    assert submit(simulator, endpoint="fal-ai").status == 404
    assert simulator.count() == 0


@pytest.mark.parametrize("header", [None, "Bearer abc", "Key", "Key "])
def test_without_a_key_nothing_is_taken_or_told(simulator: SimulatorProcess, header: str | None) -> None:
    taken = accepted(simulator)
    headers = {} if header is None else {"Authorization": header}
    reply = simulator.request("POST", "/fal-ai/veo3.1", body={"prompt": "a cat"}, headers=headers)
    assert reply.status == 401
    for method, name in (("GET", "status_url"), ("GET", "response_url"), ("PUT", "cancel_url")):
        assert simulator.request(method, taken[name], headers=headers).status == 401
    assert (simulator.count(), simulator.posts()) == (1, 2)


def test_a_set_key_is_the_only_one(new_simulator: Start) -> None:
    simulator = new_simulator(key="right")
    assert submit(simulator, key="wrong").status == 401
    assert submit(simulator, key="right").status == 200
    assert simulator.count() == 1


def test_a_job_is_unseen_by_another_key_and_under_another_app(simulator: SimulatorProcess) -> None:
    body = accepted(simulator)
    unseen = simulator.request("GET", "/fal-ai/veo3.1/requests/no-such-id/status", key=KEY)
    foreign = simulator.request("GET", body["status_url"], key="another:key")
    assert (unseen.status, foreign.status) == (404, 404)
    assert foreign.body == unseen.body
    assert simulator.request("PUT", body["cancel_url"], key="another:key").status == 404
    elsewhere = body["status_url"].replace("veo3.1", "veo3")
    assert read(simulator, elsewhere).status == 404


def test_name_spaces_are_part_of_the_addresses(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, endpoint="workflows/owner/flow/deep/path")
    assert body["status_url"].endswith(f"/workflows/owner/flow/requests/{body['request_id']}/status")
    assert read(simulator, body["status_url"]).status == 200


def test_a_waiting_job_is_removed_by_cancel_and_not_billed(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: queue_forever]")
    reply = simulator.request("PUT", body["cancel_url"], key=KEY)
    assert (reply.status, reply.json) == (202, {"status": "CANCELLATION_REQUESTED"})
    status = read(simulator, body["status_url"])
    assert (status.json["status"], status.json["error_type"]) == ("COMPLETED", "client_cancelled")
    assert read(simulator, body["response_url"]).status == 499
    again = simulator.request("PUT", body["cancel_url"], key=KEY)
    assert (again.status, again.json) == (400, {"status": "ALREADY_COMPLETED"})
    (job,) = simulator.jobs()
    assert (job["outcome"], job["billed"]) == ("cancelled", False)


def test_a_cancelled_job_can_be_forgotten(simulator: SimulatorProcess) -> None:
    body = accepted(simulator, "a cat [sim: queue_forever; cancel=forget]")
    assert simulator.request("PUT", body["cancel_url"], key=KEY).status == 202
    assert read(simulator, body["status_url"]).status == 404
    assert simulator.count() == 1


@pytest.mark.parametrize(
    ("directive", "phase", "outcome"),
    [("", "IN_PROGRESS", None), ("; cancel=obey", "COMPLETED", "cancelled")],
)
def test_a_running_job_listens_to_cancel_only_when_told_to(
    simulator: SimulatorProcess, directive: str, phase: str, outcome: str | None
) -> None:
    body = accepted(simulator, f"a cat [sim: queue_seconds=0 run_forever{directive}]")
    assert simulator.request("PUT", body["cancel_url"], key=KEY).status == 202
    assert read(simulator, body["status_url"]).json["status"] == phase
    (job,) = simulator.jobs()
    assert (job["outcome"], job["billed"]) == (outcome, False)
    assert job["cancel_asked_at"] is not None


def test_cancelling_what_is_over_or_unseen_is_refused(simulator: SimulatorProcess) -> None:
    body = accepted(simulator)
    assert simulator.request("PUT", body["cancel_url"], key=KEY).status == 400
    unseen = body["cancel_url"].replace(body["request_id"], "no-such-id")
    assert simulator.request("PUT", unseen, key=KEY).status == 404
    assert [job["outcome"] for job in simulator.jobs()] == ["success"]
