"""POST /hooks/{provider}/{key}: only a signed call to a key of ours is taken in (C46)."""

import json
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from core.ids import new_id, webhook_key
from tests import makers
from tests.api.answers import nothing_changes
from tests.makers import Owner
from videos.engine import webhooks
from videos.models import WebhookCall

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(owner: Owner, simulator: Any) -> str:
    """The call-back key of a task that the provider has, and that no call-back has told of."""
    client_id = makers.submit(owner, prompt="a [sim: run_forever webhook_none]")
    makers.work(2)
    return webhook_key(makers.view(owner, client_id).claim.pk)


def call(provider: str, key: str, content: Any = b"{}", **headers: str) -> Any:
    return Client(enforce_csrf_checks=True).post(
        f"/hooks/{provider}/{key}", content, content_type="application/json", headers=headers
    )


def assert_refused(answer: Any, status: int) -> None:
    assert answer.status_code == status, answer.content
    assert answer.json()["received"] is False
    assert not WebhookCall.objects.exists()


@pytest.mark.parametrize("provider", ["fal", "no-such-provider"])
@pytest.mark.parametrize("key", ["x", "0" * 64, "G" * 64])
def test_a_key_that_we_did_not_make_is_404(provider: str, key: str):
    with nothing_changes():
        assert_refused(call(provider, key), 404)


def test_the_key_of_a_task_that_was_never_sent_is_404(simulator: Any):
    with nothing_changes():
        assert_refused(call("fal", webhook_key(new_id())), 404)


def test_the_key_of_another_providers_task_is_404(sent: str):
    with nothing_changes():
        assert_refused(call("fal_blind", sent), 404)


def test_a_call_without_a_signature_is_not_believed(sent: str):
    with nothing_changes():
        assert_refused(call("fal", sent, json.dumps({"request_id": "x", "status": "OK"})), 401)


def test_a_call_with_a_made_up_signature_is_not_believed(sent: str):
    headers = {
        "x-fal-webhook-request-id": "a",
        "x-fal-webhook-user-id": "b",
        "x-fal-webhook-timestamp": "1700000000",
        "x-fal-webhook-signature": "00" * 64,
    }
    with nothing_changes():
        assert_refused(call("fal", sent, b"{}", **headers), 401)


def test_a_body_over_the_limit_is_413_before_anything_else(sent: str):
    with nothing_changes():
        assert_refused(call("fal", sent, b"x" * (1024 * 1024 + 1)), 413)


def test_only_a_post_is_taken():
    assert Client().get(f"/hooks/fal/{'0' * 64}").status_code == 405


def test_a_call_that_cannot_be_stored_is_503_so_that_it_comes_again(
    sent: str, monkeypatch: pytest.MonkeyPatch
):
    def away(**_: Any) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(webhooks, "receive_call", away)
    assert_refused(call("fal", sent), 503)
