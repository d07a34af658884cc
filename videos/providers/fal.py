"""fal's queue API. Contract: call-back (P4), list with echo of ended jobs (P3), bill per request; never
resent.

Sources: official `fal-client` 1.0.3; fal's documentation of the queue, webhooks and platform API. What a flag
rests on is said in `FAL_CAPABILITIES.evidence`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from core.http import AllowedOrigins, DownloadRefused, HttpRequest, HttpResponse
from core.http.addresses import parse_origin
from videos.providers import fal_answers, fal_webhook
from videos.providers.base import (
    Accepted,
    BillingExport,
    CancelAnswer,
    CancelSupport,
    Capabilities,
    Job,
    Lookup,
    LookupHit,
    LookupPage,
    LookupSees,
    NotSupported,
    Order,
    ResultReading,
    SigningKeys,
    StatusReading,
    Submission,
    SubmitAnswer,
    SubmitIdempotency,
    WebhookNotice,
    WebhookRefused,
    WebhookSupport,
)
from videos.providers.jwks import JwksCache
from videos.providers.text import clean_text, redact

FAL_CAPABILITIES = Capabilities(
    submit_idempotency=SubmitIdempotency.NONE,
    lookup=Lookup.LIST_ECHO,
    lookup_sees=LookupSees.ENDED_ONLY,
    lookup_window_seconds=30 * 24 * 3600,
    lookup_lag_seconds=120,
    webhook=WebhookSupport.PER_REQUEST_URL,
    webhook_signature=True,
    cancel=CancelSupport.SIGNAL,
    cost_in_status=False,
    billing_export=BillingExport.PER_REQUEST,
    max_job_seconds=3600,
    result_ttl_seconds=3600,
    evidence=MappingProxyType(
        {
            "submit_idempotency": "None in fal-client 1.0.3, none among the documented headers.",
            "lookup": "Platform API, requests by endpoint: expand=payloads returns json_input.",
            "lookup_sees": "Sorted by end time; queued and running ones are not documented.",
            "lookup_window_seconds": "Payloads are kept for 30 days unless storing is off.",
            "lookup_lag_seconds": "Not documented; a cautious value.",
            "webhook": "fal_webhook in the submit address; 10 deliveries in 2 hours.",
            "webhook_signature": "Webhook page: Ed25519, JWKS, five minutes.",
            "cancel": "Queue page: removed from the queue; a signal while in progress.",
            "cost_in_status": "Units come in a header of the result, not with the status.",
            "billing_export": "Platform API, billing events: one line per request_id, 90 days.",
            "max_job_seconds": "Not documented; an hour is far beyond any video model.",
            "result_ttl_seconds": "Queue results: an hour; media: seven days or more.",
        }
    ),
)
# Documented hosts of generated media.
FAL_RESULT_HOSTS = ("fal.media", "*.fal.media")
LOOKUP_PAGE = 100  # the most that the list gives at once
DIGEST_LETTERS = 16


class FalQueue:
    """Adapter to fal's queue. What its capabilities rule out it neither sends nor accepts."""

    def __init__(
        self,
        *,
        base_url: str,
        api_url: str,
        jwks_url: str,
        key: str,
        result_hosts: Iterable[str] = (),
        name: str = "fal",
        capabilities: Capabilities = FAL_CAPABILITIES,
    ) -> None:
        """`result_hosts`: more `host[:port]` that results may come from, as the operator wrote them."""
        self.name = name
        self.capabilities = capabilities
        self._base_url = base_url.rstrip("/")
        self._api_url = api_url.rstrip("/")
        self._key = key.strip()
        self._secrets = (self._key, self._key.rpartition(":")[2])
        self._base_origin = parse_origin(self._base_url)
        self.account = f"fal:{_digest(self._base_url, self._key)}"
        self.result_origins = AllowedOrigins.of(hosts=FAL_RESULT_HOSTS, named=result_hosts)
        self.signing_keys: SigningKeys | None = (
            JwksCache(jwks_url) if capabilities.webhook_signature else None
        )

    def submit(self, order: Order) -> Submission:
        """The one POST of an attempt; the same order always gives the same bytes."""
        marker = self._marker(order)
        url = f"{self._base_url}/{quote(order.endpoint)}"
        if order.webhook_url and self.capabilities.webhook is WebhookSupport.PER_REQUEST_URL:
            url += "?" + urlencode({"fal_webhook": order.webhook_url})
        body = json.dumps(_model_input(order, marker), sort_keys=True, separators=(",", ":")).encode("ascii")
        headers = {**self._headers(), "content-type": "application/json"}
        return Submission(request=HttpRequest("POST", url, headers, body), marker=marker)

    def read_submit(self, response: HttpResponse) -> SubmitAnswer:
        answer = fal_answers.read_submit(self._without_secrets(response))
        if isinstance(answer, Accepted):
            own = {name: url for name, url in answer.handles.items() if self._is_own(url)}
            return replace(answer, handles=own)
        return answer

    def status(self, job: Job) -> HttpRequest:
        return self._get(self._address(job, "status_url", "/status"))

    def read_status(self, response: HttpResponse) -> StatusReading:
        return fal_answers.read_status(self._without_secrets(response))

    def result(self, job: Job) -> HttpRequest:
        return self._get(self._address(job, "response_url", ""))

    def read_result(self, response: HttpResponse) -> ResultReading:
        return fal_answers.read_result(self._without_secrets(response))

    def cancel(self, job: Job) -> HttpRequest:
        """Raises: NotSupported where the contract has no cancellation."""
        if self.capabilities.cancel is CancelSupport.NONE:
            raise NotSupported("cancel")
        return HttpRequest("PUT", self._address(job, "cancel_url", "/cancel"), self._headers(), b"")

    def read_cancel(self, response: HttpResponse) -> CancelAnswer:
        return fal_answers.read_cancel(self._without_secrets(response))

    def lookup(
        self, *, endpoint: str, since: datetime, until: datetime, cursor: str | None = None
    ) -> HttpRequest:
        """One page of the ended requests of a model. Raises: NotSupported where the contract has no
        look-up.
        """
        if self.capabilities.lookup is Lookup.NONE:
            raise NotSupported("lookup")
        query = {
            "endpoint_id": endpoint,
            "start": _written(since),
            "end": _written(until),
            "limit": str(LOOKUP_PAGE),
            "expand": "payloads",
        }
        if cursor:
            query["cursor"] = cursor
        return self._get(f"{self._api_url}/v1/models/requests/by-endpoint?{urlencode(query)}")

    def read_lookup(self, response: HttpResponse) -> LookupPage:
        return fal_answers.read_lookup(self._without_secrets(response))

    def recognises(self, order: Order, hit: LookupHit) -> bool:
        """Whether the listed input is exactly what this order sends."""
        if hit.input is None or self.capabilities.lookup is not Lookup.LIST_ECHO:
            return False
        sent = _model_input(order, self._marker(order))
        return all(_same(value, hit.input.get(name)) for name, value in sent.items())

    def verify_webhook(
        self, headers: Mapping[str, str], raw_body: bytes, now: datetime, keys: SigningKeys | None = None
    ) -> None:
        """Raises: WebhookRefused; with 404 where the contract has no call-backs."""
        source = keys or self.signing_keys
        if self.capabilities.webhook is WebhookSupport.NONE or source is None:
            raise WebhookRefused(404, "no_webhooks")
        fal_webhook.verify(headers, raw_body, now=now, keys=source)

    def read_webhook(self, raw_body: bytes) -> WebhookNotice:
        return fal_webhook.read(raw_body)

    def scrub(self, text: str, limit: int = 2000) -> str:
        """Our key and its secret half removed, cleaned, capped."""
        # Once more after cleaning, which may have joined a secret that control characters had torn apart; and
        # first, since a cap could leave half of one.
        return redact(clean_text(redact(text, self._secrets), limit), self._secrets)[:limit]

    def _without_secrets(self, response: HttpResponse) -> HttpResponse:
        """The answer before anything reads, cuts or keeps it: a provider may echo the key in an error."""
        text = response.body.decode("latin-1")
        return replace(response, body=redact(text, self._secrets).encode("latin-1"))

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Key {self._key}", "accept": "application/json"}

    def _get(self, url: str) -> HttpRequest:
        return HttpRequest("GET", url, self._headers())

    def _address(self, job: Job, handle: str, path: str) -> str:
        """The address that the provider gave if it is its own, else the documented one of owner and app.

        The key goes with the request, so an address elsewhere would give it away.
        """
        given = job.handles.get(handle, "")
        if given and self._is_own(given):
            return given
        app = "/".join(job.endpoint.split("/")[:2])
        return f"{self._base_url}/{quote(app)}/requests/{quote(job.upstream_id, safe='')}{path}"

    def _is_own(self, url: str) -> bool:
        try:
            return parse_origin(url) == self._base_origin
        except DownloadRefused:
            return False

    def _marker(self, order: Order) -> str | None:
        """The seed by which the list can be matched: none where it can't, or where the user chose the
        seed.
        """
        has_list = self.capabilities.lookup is Lookup.LIST_ECHO
        if not has_list or order.seed is not None or not order.model.accepts_seed:
            return None
        return order.marker or str(derived_seed(order.key, order.attempt_number))


def derived_seed(key: str, attempt_number: int) -> int:
    """A seed of 31 bits that is the same whenever it is computed for one attempt, and differs between
    attempts.
    """
    digest = hashlib.sha256(f"seed\n{key}\n{attempt_number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFF_FFFF


def _model_input(order: Order, marker: str | None) -> dict[str, Any]:
    """The model's own input, after the catalogue's description of what it takes."""
    model = order.model
    seed = order.seed if order.seed is not None else (int(marker) if marker else None)
    optional = {
        "aspect_ratio": order.aspect_ratio,
        "resolution": order.resolution,
        "generate_audio": order.audio,
        "seed": seed,
    }
    chosen = {name: value for name, value in optional.items() if name in model.sends and value is not None}
    written = {
        "prompt": order.prompt,
        "duration": model.duration_format.format(seconds=order.seconds),
        **chosen,
    }
    if model.input == "image" and order.image_url:
        written["image_url"] = order.image_url
    return written


def _same(sent: Any, listed: Any) -> bool:
    """Equal in value and type, as True equals 1 otherwise."""
    return type(sent) is type(listed) and bool(sent == listed)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:DIGEST_LETTERS]


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
