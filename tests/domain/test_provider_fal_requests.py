"""What the fal adapter sends: the model's input, the marker, the addresses."""

import json
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.domain.provider_makers import API, BASE, KEY, answer, blind, fal, order
from videos.providers.base import (
    Accepted,
    BillingExport,
    CancelSupport,
    Job,
    Lookup,
    LookupHit,
    LookupSees,
    NotSupported,
    SubmitIdempotency,
    WebhookRefused,
    WebhookSupport,
)
from videos.providers.fal import derived_seed

HOOK = "https://us.example/hooks/fal/t0ken?x=1&y=2"
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def sent(submission_body: bytes | None) -> dict[str, object]:
    assert submission_body is not None
    decoded = json.loads(submission_body)
    assert isinstance(decoded, dict)
    return decoded


def test_a_submission_is_one_post_of_the_model_s_own_input() -> None:
    submission = fal().submit(order(seed=7, webhook_url=HOOK))
    request = submission.request

    assert request.method == "POST"
    assert request.url.startswith(f"{BASE}/fal-ai/veo3.1?fal_webhook=https%3A%2F%2F")
    assert parse_qs(urlsplit(request.url).query) == {"fal_webhook": [HOOK]}
    assert request.headers["authorization"] == f"Key {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert sent(request.body) == {
        "prompt": "a heron at dawn",
        "duration": "8s",
        "resolution": "720p",
        "aspect_ratio": "16:9",
        "generate_audio": True,
        "seed": 7,
    }


def test_the_same_order_gives_the_same_bytes() -> None:
    first, second = fal().submit(order()).request, fal().submit(order()).request
    assert (first.url, first.body) == (second.url, second.body)


def test_nothing_that_looks_like_an_idempotency_key_or_switches_storing_off_is_sent() -> None:
    names = {name.lower() for name in fal().submit(order()).request.headers}
    assert names == {"authorization", "accept", "content-type"}


def test_a_chosen_seed_is_sent_and_is_no_marker() -> None:
    submission = fal().submit(order(seed=0))
    assert submission.marker is None
    assert sent(submission.request.body)["seed"] == 0


def test_without_a_chosen_seed_the_marker_is_a_seed_of_31_bits_for_this_attempt() -> None:
    first, again, next_attempt = (fal().submit(order(attempt_number=number)) for number in (1, 1, 2))

    assert first.marker == str(derived_seed("epoch-key-1", 1))
    assert sent(first.request.body)["seed"] == derived_seed("epoch-key-1", 1)
    assert again.marker == first.marker
    assert next_attempt.marker != first.marker
    assert all(0 <= derived_seed(f"key-{n}", 1) < 2**31 for n in range(1000))


def test_a_recorded_marker_is_repeated_as_it_was() -> None:
    submission = fal().submit(order(marker="12345"))
    assert (submission.marker, sent(submission.request.body)["seed"]) == ("12345", 12345)


def test_a_model_without_seed_gets_only_what_it_takes() -> None:
    submission = fal().submit(
        order("kling-2.5-turbo", seconds=5, resolution="1080p", audio=False, aspect_ratio="1:1")
    )
    assert submission.request.url == f"{BASE}/fal-ai/kling-video/v2.5-turbo/pro/text-to-video"
    assert submission.marker is None
    assert sent(submission.request.body) == {
        "prompt": "a heron at dawn",
        "duration": "5",
        "aspect_ratio": "1:1",
    }


def test_an_image_goes_to_models_that_take_one_alone() -> None:
    url = "https://us.example/files/signed"
    with_image = fal().submit(order("veo3.1-image", image_url=url)).request
    without = fal().submit(order(image_url=url)).request
    assert sent(with_image.body)["image_url"] == url
    assert "image_url" not in sent(without.body)


@pytest.mark.parametrize("prompt", ["苍鹭 🐦", 'quote " and \\', "line\nbreak", "\ud800"])
def test_any_prompt_is_written_as_plain_ascii_and_comes_back(prompt: str) -> None:
    body = fal().submit(order(prompt=prompt)).request.body
    assert body is not None
    assert body.isascii()
    assert sent(body)["prompt"] == prompt


def test_the_blind_configuration_sends_neither_call_back_nor_marker() -> None:
    submission = blind().submit(order("veo3.1-blind", webhook_url=HOOK))
    assert submission.request.url == f"{BASE}/fal-ai/veo3.1"
    assert submission.marker is None
    assert "seed" not in sent(submission.request.body)
    assert sent(blind().submit(order("veo3.1-blind", seed=3)).request.body)["seed"] == 3


def test_the_blind_configuration_has_every_flag_off() -> None:
    flags = blind().capabilities
    assert (flags.submit_idempotency, flags.lookup, flags.webhook, flags.cancel, flags.billing_export) == (
        SubmitIdempotency.NONE,
        Lookup.NONE,
        WebhookSupport.NONE,
        CancelSupport.NONE,
        BillingExport.NONE,
    )
    assert (flags.webhook_signature, flags.cost_in_status) == (False, False)


def test_what_the_blind_contract_lacks_is_refused_and_not_sent() -> None:
    job = Job(upstream_id="r1", endpoint="fal-ai/veo3.1")
    with pytest.raises(NotSupported):
        blind().cancel(job)
    with pytest.raises(NotSupported):
        blind().lookup(endpoint="fal-ai/veo3.1", since=NOON, until=NOON)
    with pytest.raises(WebhookRefused) as raised:
        blind().verify_webhook({}, b"{}", NOON)
    assert (raised.value.status, raised.value.reason) == (404, "no_webhooks")
    assert blind().signing_keys is None


def test_the_contract_of_fal_never_allows_a_resend() -> None:
    flags = fal().capabilities
    assert flags.submit_idempotency is SubmitIdempotency.NONE
    assert (flags.lookup, flags.lookup_sees) == (Lookup.LIST_ECHO, LookupSees.ENDED_ONLY)
    assert set(flags.evidence) >= {"submit_idempotency", "lookup", "lookup_sees", "webhook", "billing_export"}


def test_reads_use_the_provider_s_own_addresses() -> None:
    handles = {
        "status_url": f"{BASE}/fal-ai/veo3.1/requests/r1/status?a=1",
        "response_url": f"{BASE}/fal-ai/veo3.1/requests/r1/response",
        "cancel_url": f"{BASE}/fal-ai/veo3.1/requests/r1/cancel",
    }
    job = Job(upstream_id="r1", endpoint="fal-ai/veo3.1/fast", handles=handles)
    adapter = fal()

    assert [adapter.status(job).url, adapter.result(job).url, adapter.cancel(job).url] == list(
        handles.values()
    )
    assert [adapter.status(job).method, adapter.result(job).method, adapter.cancel(job).method] == [
        "GET",
        "GET",
        "PUT",
    ]
    assert adapter.status(job).headers["authorization"] == f"Key {KEY}"


def test_a_job_bound_without_addresses_is_read_by_owner_and_app() -> None:
    job = Job(upstream_id="r1", endpoint="fal-ai/veo3.1/fast")
    assert fal().status(job).url == f"{BASE}/fal-ai/veo3.1/requests/r1/status"
    assert fal().result(job).url == f"{BASE}/fal-ai/veo3.1/requests/r1"
    assert fal().cancel(job).url == f"{BASE}/fal-ai/veo3.1/requests/r1/cancel"


@pytest.mark.parametrize(
    "foreign",
    [
        "https://evil.example/status",
        "http://queue.provider.example/status",
        "https://queue.provider.example:8443/status",
        "https://queue.provider.example@evil.example/status",
        "https://queue.provider.example.evil.example/status",
        "https://queue.provider.example\\@evil.example/",
        "//evil.example/status",
        "not an address",
    ],
)
def test_the_key_never_goes_to_an_address_elsewhere(foreign: str) -> None:
    accepted = fal().read_submit(answer(200, {"request_id": "r1", "status_url": foreign}))
    assert accepted == Accepted(upstream_id="r1", handles={}, queue_position=None)

    kept = Job(upstream_id="r1", endpoint="fal-ai/veo3.1", handles={"status_url": foreign})
    assert fal().status(kept).url == f"{BASE}/fal-ai/veo3.1/requests/r1/status"


def test_an_odd_id_cannot_leave_its_place_in_the_address() -> None:
    job = Job(upstream_id="../../../admin?x=1#", endpoint="fal-ai/veo3.1")
    assert fal().status(job).url == (f"{BASE}/fal-ai/veo3.1/requests/..%2F..%2F..%2Fadmin%3Fx%3D1%23/status")


def test_a_look_up_asks_for_one_model_in_a_span_with_the_inputs() -> None:
    since = datetime(2026, 11, 30, 20, 0, tzinfo=timezone(timedelta(hours=8)))
    request = fal().lookup(endpoint="fal-ai/veo3.1", since=since, until=NOON, cursor="c/1")
    parts = urlsplit(request.url)

    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{API}/v1/models/requests/by-endpoint"
    assert parse_qs(parts.query) == {
        "endpoint_id": ["fal-ai/veo3.1"],
        "start": ["2026-11-30T12:00:00Z"],
        "end": ["2026-11-30T12:00:00Z"],
        "limit": ["100"],
        "expand": ["payloads"],
        "cursor": ["c/1"],
    }


def test_a_listed_input_is_recognised_only_if_it_is_exactly_ours() -> None:
    adapter, ours = fal(), order()
    listed = sent(adapter.submit(ours).request.body)

    def hit(**changes: object) -> LookupHit:
        return LookupHit(upstream_id="r1", input={**listed, **changes}, state="ended", sent_at=None)

    assert adapter.recognises(ours, hit())
    assert adapter.recognises(ours, hit(safety_tolerance="4"))  # filled in by the provider
    assert not adapter.recognises(ours, hit(seed=1))
    assert not adapter.recognises(ours, hit(prompt="a heron at dusk"))
    assert not adapter.recognises(ours, hit(generate_audio=1))
    assert not adapter.recognises(order(attempt_number=2), hit())
    assert not adapter.recognises(order(key="another"), hit())
    assert not adapter.recognises(ours, LookupHit(upstream_id="r1", input=None, state="ended", sent_at=None))
    assert not blind().recognises(ours, hit())


def test_the_account_is_stable_shared_by_both_configurations_and_gives_nothing_away() -> None:
    assert fal().account == fal(base_url=f"{BASE}/").account == blind().account
    assert fal(key="key-id-123:another").account != fal().account
    assert fal(base_url="https://other.example").account != fal().account
    assert "secret" not in fal().account
    assert "key-id" not in fal().account


def test_results_may_come_from_the_provider_s_media_and_from_named_hosts() -> None:
    origins = fal(result_hosts=["127.0.0.1:8900"]).result_origins
    assert origins.hosts == frozenset({"fal.media", "*.fal.media"})
    assert origins.named == frozenset({("127.0.0.1", 8900)})
