"""C46: call-backs that are forged, stale, foreign or enormous."""

import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.test import Client

from core.ids import webhook_key
from simulator.signing import load_signer, webhook_message
from tests import makers
from tests.cases.evidence import changed_tables, rows, state_of
from tests.makers import Owner
from videos.models import WebhookCall

pytestmark = pytest.mark.django_db


class Caller:
    """Signs and sends call-backs as the provider would, or as somebody else might."""

    def __init__(self, simulator: Any) -> None:
        self.key = load_signer(simulator.data_dir / "simulator").key

    def call(
        self,
        address: str,
        *,
        request_id: str,
        key: Ed25519PrivateKey | None = None,
        seconds: float = 0,
        body: bytes | None = None,
        **headers: str | None,
    ) -> Any:
        raw = body or json.dumps({"request_id": request_id, "status": "OK", "payload": {}}).encode()
        stamp = str(int(time.time() + seconds))
        message = webhook_message(request_id=request_id, user_id="u", timestamp=stamp, body=raw)
        given: dict[str, str | None] = {
            "x-fal-webhook-request-id": request_id,
            "x-fal-webhook-user-id": "u",
            "x-fal-webhook-timestamp": stamp,
            "x-fal-webhook-signature": (key or self.key).sign(message).hex(),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        sent = {name: value for name, value in given.items() if value is not None}
        return Client().post(address, raw, content_type="application/json", headers=sent)


@pytest.fixture
def caller(simulator: Any) -> Caller:
    return Caller(simulator)


def running(owner: Owner, **fields: Any) -> tuple[str, str, str]:
    """A task that runs: its client id, its call-back address, and its job's id."""
    client_id = makers.submit(owner, prompt="a cat [sim: run_forever webhook_none]", **fields)
    makers.work_once()
    (attempt,) = makers.attempts_of(owner, client_id)
    assert attempt.upstream_id is not None
    return client_id, f"/hooks/fal/{webhook_key(attempt.task_id)}", attempt.upstream_id


def test_a_call_that_is_signed_and_fresh_is_taken(owner: Owner, caller: Caller) -> None:
    """The control: what the others lack is all that they lack."""
    client_id, address, job = running(owner)
    answer = caller.call(address, request_id=job)
    assert (answer.status_code, answer.json()) == (200, {"received": True})
    assert WebhookCall.objects.get().upstream_id == job
    assert state_of(owner, client_id)[:2] == ("processing", "charged")


FORGED: list[tuple[dict[str, Any], int]] = [
    ({"key": Ed25519PrivateKey.generate()}, 401),
    ({"x_fal_webhook_signature": None}, 401),
    ({"x_fal_webhook_signature": "00" * 64}, 401),
    ({"x_fal_webhook_signature": "no hex at all"}, 400),
    ({"x_fal_webhook_signature": "abcd"}, 400),
    ({"seconds": -600}, 401),
    ({"seconds": 600}, 401),
    ({"x_fal_webhook_timestamp": "yesterday"}, 400),
    ({"x_fal_webhook_user_id": "somebody else"}, 401),
    ({"x_fal_webhook_request_id": "another-request"}, 401),
    ({"body": b"not json"}, 400),
    ({"body": b"[]"}, 400),
    ({"body": b'{"status": "OK"}'}, 400),
    ({"body": b'{"request_id": {"a": 1}}'}, 400),
]


def test_a_call_that_is_forged_stale_or_malformed_is_refused_and_nothing_is_changed(
    owner: Owner, caller: Caller
) -> None:
    _, address, job = running(owner)
    before = rows()
    for how, status in FORGED:
        assert caller.call(address, request_id=job, **how).status_code == status, how
    assert changed_tables(before) == []


def test_a_body_changed_on_the_way_is_refused(owner: Owner, caller: Caller) -> None:
    _, address, job = running(owner)
    signed = json.dumps({"request_id": job, "status": "ERROR"}).encode()
    stamp = str(int(time.time()))
    message = webhook_message(request_id=job, user_id="u", timestamp=stamp, body=signed)
    before = rows()
    answer = Client().post(
        address,
        signed.replace(b"ERROR", b"OK"),
        content_type="application/json",
        headers={
            "x-fal-webhook-request-id": job,
            "x-fal-webhook-user-id": "u",
            "x-fal-webhook-timestamp": stamp,
            "x-fal-webhook-signature": caller.key.sign(message).hex(),
        },
    )
    assert answer.status_code == 401
    assert changed_tables(before) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda address: address[:-1] + ("0" if address[-1] != "0" else "1"),
        lambda address: address[:-40],
        lambda address: "/hooks/fal/" + "0" * 64,
        lambda address: address.replace("/fal/", "/fal_blind/"),
        lambda address: address.replace("/fal/", "/nobody/"),
        lambda address: "/hooks/fal/%00",
    ],
    ids=["digest", "short", "zeros", "blind provider", "unknown provider", "nul"],
)
def test_a_key_that_is_not_ours_is_unknown_and_nothing_is_changed(
    owner: Owner, caller: Caller, change: Any
) -> None:
    _, address, job = running(owner)
    before = rows()
    assert caller.call(change(address), request_id=job).status_code == 404
    assert changed_tables(before) == []


def test_a_true_call_about_one_task_sent_to_another_s_address_changes_neither(
    owner: Owner, caller: Caller, simulator: Any
) -> None:
    first, _, job = running(owner)
    second, address, other_job = running(owner)
    before = rows()
    assert caller.call(address, request_id=job).status_code == 404
    assert changed_tables(before) == []
    makers.work(2)
    assert [attempt.upstream_id for attempt in makers.attempts_of(owner, first)] == [job]
    assert [attempt.upstream_id for attempt in makers.attempts_of(owner, second)] == [other_job]


def test_a_true_call_about_another_task_does_not_bind_a_task_whose_answer_was_lost(
    owner: Owner, caller: Caller, simulator: Any
) -> None:
    _, _, job = running(owner)
    lost = makers.submit(owner, prompt="a cat [sim: drop_before_accept]")
    makers.work_once()
    address = f"/hooks/fal/{webhook_key(makers.task_of(owner, lost).pk)}"
    assert caller.call(address, request_id=job).status_code == 404
    makers.work(2)
    assert state_of(owner, lost)[:2] == ("unknown", "charged")
    assert [attempt.outcome for attempt in makers.attempts_of(owner, lost)] == ["unclear"]


def test_a_signed_call_about_a_job_the_provider_does_not_know_binds_nothing(
    owner: Owner, caller: Caller, simulator: Any
) -> None:
    lost = makers.submit(owner, prompt="a cat [sim: drop_before_accept]")
    makers.work_once()
    address = f"/hooks/fal/{webhook_key(makers.task_of(owner, lost).pk)}"
    assert caller.call(address, request_id="made-up-by-somebody").status_code == 200
    makers.work(3)
    assert state_of(owner, lost)[:2] == ("unknown", "charged")
    assert [attempt.upstream_id for attempt in makers.attempts_of(owner, lost)] == [None]


def test_a_call_never_ends_a_task_by_its_own_word(owner: Owner, caller: Caller) -> None:
    client_id, address, job = running(owner)
    for word in ("ERROR", "OK"):
        body = json.dumps({"request_id": job, "status": word, "error": "it broke", "payload": None}).encode()
        assert caller.call(address, request_id=job, body=body).status_code == 200
        makers.work(2)
        assert state_of(owner, client_id)[:2] == ("processing", "charged")


def test_fifty_megabytes_are_refused_and_nothing_is_changed(owner: Owner, caller: Caller) -> None:
    _, address, job = running(owner)
    before = rows()
    body = b'{"request_id": "' + b"x" * 50_000_000 + b'"}'
    assert caller.call(address, request_id=job, body=body).status_code == 413
    assert changed_tables(before) == []


def test_only_a_post_is_a_call(owner: Owner, simulator: Any) -> None:
    _, address, _ = running(owner)
    assert Client().get(address).status_code == 405
