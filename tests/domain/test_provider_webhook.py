"""Call-backs are believed by their signature over the raw bytes, and keys are fetched seldom."""

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from core.http import HttpRequest, HttpResponse, ReadFailed
from tests.domain.provider_makers import fal
from videos.providers.base import WebhookNotice, WebhookRefused
from videos.providers.jwks import JwksCache, KeysUnavailable, read_keys

OURS = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
NEXT = Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)
STRANGER = Ed25519PrivateKey.from_private_bytes(b"\x03" * 32)
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
BODY = b'{"request_id":"r1","gateway_request_id":"r1","status":"OK","payload":{"video":{"url":"u"}}}'

VECTOR = (
    "e839449c3b3bdf7137621028fd7faa69f37ae1043dfe75edbb085b6863ae29dd"
    "822dc292fa4b35ddd9da570e3664d9534097037b4406d0809ec7e08a3976d503"
)


def raw(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


class Keys:
    """A source of keys that counts how often it is asked anew."""

    def __init__(self, first: Sequence[bytes] | None, then: Sequence[bytes] | None = None) -> None:
        self.first, self.then, self.refetches = first, then, 0

    def current(self) -> Sequence[bytes]:
        if self.first is None:
            raise KeysUnavailable("none")
        return self.first

    def refetched(self) -> Sequence[bytes] | None:
        self.refetches += 1
        return self.then


def signed(
    body: bytes = BODY, *, key: Ed25519PrivateKey = OURS, at: int | None = None, request_id: str = "r1"
) -> dict[str, str]:
    """The headers of a call signed as documented."""
    timestamp = str(int(NOW.timestamp()) if at is None else at)
    message = f"{request_id}\nuser-1\n{timestamp}\n{hashlib.sha256(body).hexdigest()}".encode()
    return {
        "X-Fal-Webhook-Request-Id": request_id,
        "X-Fal-Webhook-User-Id": "user-1",
        "X-Fal-Webhook-Timestamp": timestamp,
        "X-Fal-Webhook-Signature": key.sign(message).hex(),
    }


def refused(headers: dict[str, str], body: bytes = BODY, keys: Keys | None = None) -> tuple[int, str]:
    with pytest.raises(WebhookRefused) as raised:
        fal().verify_webhook(headers, body, NOW, keys or Keys([raw(OURS)]))
    return raised.value.status, raised.value.reason


def test_a_signature_made_as_documented_is_believed() -> None:
    # A vector fixed in bytes, so that a change of the message's form cannot pass by changing both sides.
    headers = {
        "x-fal-webhook-request-id": "r1",
        "x-fal-webhook-user-id": "user-1",
        "x-fal-webhook-timestamp": "1796040000",
        "x-fal-webhook-signature": VECTOR,
    }
    fal().verify_webhook(headers, BODY, NOW, Keys([raw(STRANGER), raw(OURS)]))


def test_header_names_may_be_in_any_case_and_no_keys_are_fetched_for_a_good_call() -> None:
    keys = Keys([raw(OURS)])
    fal().verify_webhook({name.upper(): value for name, value in signed().items()}, BODY, NOW, keys)
    assert keys.refetches == 0


@pytest.mark.parametrize("skew", [-300, -299, 0, 299, 300])
def test_a_call_within_five_minutes_is_believed(skew: int) -> None:
    fal().verify_webhook(signed(at=int(NOW.timestamp()) + skew), BODY, NOW, Keys([raw(OURS)]))


@pytest.mark.parametrize("skew", [-301, 301, -86400, 10**9])
def test_a_stale_or_future_call_is_refused_before_any_key_is_asked_for_c46(skew: int) -> None:
    keys = Keys(None)
    assert refused(signed(at=int(NOW.timestamp()) + skew), keys=keys) == (401, "timestamp_stale")


@pytest.mark.parametrize(
    "changed", [BODY + b" ", BODY.replace(b"r1", b"r2"), b"", json.dumps(json.loads(BODY)).encode()]
)
def test_a_changed_body_is_refused_c46(changed: bytes) -> None:
    assert refused(signed(), changed) == (401, "signature_wrong")


@pytest.mark.parametrize("name", ["Request-Id", "User-Id", "Timestamp", "Signature"])
def test_a_missing_or_empty_header_is_refused_c46(name: str) -> None:
    headers = signed()
    full = f"X-Fal-Webhook-{name}"
    without = {key: value for key, value in headers.items() if key != full}
    assert refused(without) == (401, "signature_missing")
    assert refused({**headers, full: ""}) == (401, "signature_missing")


@pytest.mark.parametrize("name", ["Request-Id", "User-Id"])
def test_a_changed_header_is_refused(name: str) -> None:
    assert refused({**signed(), f"X-Fal-Webhook-{name}": "other"}) == (401, "signature_wrong")


@pytest.mark.parametrize(
    "signature", ["zz", "00", "00" * 63, "00" * 65, "é" * 128, signed()["X-Fal-Webhook-Signature"][:-1]]
)
def test_a_signature_that_is_not_64_bytes_of_hex_is_malformed(signature: str) -> None:
    assert refused({**signed(), "X-Fal-Webhook-Signature": signature}) == (400, "signature_not_hex")


@pytest.mark.parametrize("timestamp", ["now", "1.5", "-5", "+5", "1" * 13, "\u0661\u0662", "1e9"])
def test_a_timestamp_that_is_no_whole_number_is_malformed(timestamp: str) -> None:
    assert refused({**signed(), "X-Fal-Webhook-Timestamp": timestamp}) == (400, "timestamp_not_valid")


def test_a_stranger_s_signature_is_refused_after_one_look_for_new_keys_c46() -> None:
    keys = Keys([raw(OURS)], then=[raw(OURS), raw(NEXT)])
    assert refused(signed(key=STRANGER), keys=keys) == (401, "signature_wrong")
    assert keys.refetches == 1


def test_a_new_key_of_the_provider_is_learnt_from_its_first_call() -> None:
    keys = Keys([raw(OURS)], then=[raw(NEXT)])
    fal().verify_webhook(signed(key=NEXT), BODY, NOW, keys)
    assert keys.refetches == 1


def test_without_keys_the_provider_is_asked_to_call_again() -> None:
    assert refused(signed(), keys=Keys(None)) == (503, "keys_unavailable")


@settings(max_examples=200, deadline=None, database=None)
@given(
    headers=st.dictionaries(st.sampled_from(list(signed())), st.text(max_size=140)),
    body=st.binary(max_size=100),
)
def test_no_forged_call_is_believed_or_breaks_anything(headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(WebhookRefused):
        fal().verify_webhook({**signed(key=STRANGER), **headers}, body, NOW, Keys([raw(OURS)]))


def test_a_notice_names_the_request_and_its_word() -> None:
    assert fal().read_webhook(BODY) == WebhookNotice(upstream_id="r1", word="OK")
    assert fal().read_webhook(b'{"request_id":"r1"}') == WebhookNotice(upstream_id="r1", word="")


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b"<html>", b'{"request_id":7}', b'{"request_id":"../x"}', b"\xff"]
)
def test_a_notice_without_a_request_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookRefused) as raised:
        fal().read_webhook(body)
    assert (raised.value.status, raised.value.reason) == (400, "no_request_id")


def jwks(*keys: Ed25519PrivateKey) -> bytes:
    entries = [
        {"kty": "OKP", "crv": "Ed25519", "x": base64.urlsafe_b64encode(raw(key)).rstrip(b"=").decode()}
        for key in keys
    ]
    return json.dumps({"keys": entries}).encode()


def test_only_usable_keys_of_a_set_are_read() -> None:
    good = json.loads(jwks(OURS))["keys"][0]
    odd: list[Any] = [
        {**good, "kty": "RSA"},
        {**good, "crv": "X25519"},
        {**good, "x": "AAAA"},
        {**good, "x": None},
        {**good, "x": "é"},
        "text",
        None,
    ]
    assert read_keys(json.dumps({"keys": [*odd, good]}).encode()) == (raw(OURS),)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":null}', b"<html>"])
def test_what_is_no_key_set_gives_no_keys(body: bytes) -> None:
    assert read_keys(body) == ()


class Source:
    """A JWKS address whose answers are scripted and counted, and the clock beside it."""

    def __init__(self, *answers: HttpResponse | ReadFailed) -> None:
        self.answers, self.asked, self.now = list(answers), 0, 1000.0

    def fetch(self, request: HttpRequest) -> HttpResponse:
        assert (request.method, request.url) == ("GET", "https://jwks.example/keys")
        self.asked += 1
        given = self.answers.pop(0)
        if isinstance(given, ReadFailed):
            raise given
        return given

    def cache(self) -> JwksCache:
        return JwksCache("https://jwks.example/keys", fetch=self.fetch, clock=lambda: self.now)


def test_keys_are_fetched_once_a_day() -> None:
    source = Source(HttpResponse(200, {}, jwks(OURS)), HttpResponse(200, {}, jwks(NEXT)))
    cache = source.cache()
    assert [list(cache.current()) for _ in range(3)] == [[raw(OURS)]] * 3
    source.now += 24 * 3600 - 1
    assert (list(cache.current()), source.asked) == ([raw(OURS)], 1)
    source.now += 1
    assert (list(cache.current()), source.asked) == ([raw(NEXT)], 2)


def test_an_unknown_key_is_looked_for_at_most_once_a_minute() -> None:
    source = Source(HttpResponse(200, {}, jwks(OURS)), HttpResponse(200, {}, jwks(OURS, NEXT)))
    cache = source.cache()
    cache.current()
    source.now += 59
    assert (cache.refetched(), source.asked) == (None, 1)
    source.now += 1
    assert (list(cache.refetched() or ()), source.asked) == ([raw(OURS), raw(NEXT)], 2)
    assert (cache.refetched(), source.asked) == (None, 2)


@pytest.mark.parametrize(
    "trouble", [ReadFailed("timeout"), HttpResponse(500, {}, b""), HttpResponse(200, {}, b'{"keys":[]}')]
)
def test_a_failed_look_for_new_keys_keeps_the_old_ones(trouble: HttpResponse | ReadFailed) -> None:
    source = Source(HttpResponse(200, {}, jwks(OURS)), trouble)
    cache = source.cache()
    cache.current()
    source.now += 60
    assert cache.refetched() is None
    assert list(cache.current()) == [raw(OURS)]


def test_keys_older_than_a_day_are_not_used_when_no_new_ones_come() -> None:
    renewed = HttpResponse(200, {}, jwks(NEXT))
    source = Source(HttpResponse(200, {}, jwks(OURS)), ReadFailed("refused"), renewed)
    cache = source.cache()
    cache.current()
    source.now += 24 * 3600
    for _ in range(3):
        with pytest.raises(KeysUnavailable):
            cache.current()
    assert source.asked == 2  # a flood of calls is no flood of fetches
    source.now += 60
    assert list(cache.current()) == [raw(NEXT)]
