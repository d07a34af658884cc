"""What every provider adapter offers and answers. Pure: no database, no Django, no network.

An adapter translates: an order into one HTTP request, an HTTP answer into one of the closed sets of answers
below. The engine reads these answers and the capability flags, and never a provider's name. No `read_*`
function raises, whatever the body holds: what cannot be understood has its own answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol
from uuid import UUID

from core.http import AllowedOrigins, HttpRequest, HttpResponse
from videos.catalogue import ModelSpec

NO_HANDLES: Mapping[str, str] = MappingProxyType({})


class SubmitIdempotency(StrEnum):
    """What the provider does with a repeated key of ours."""

    NONE = "none"
    REPLAY = "replay"
    CONFLICT = "conflict"


class Lookup(StrEnum):
    """How a job whose id was lost can be asked for."""

    NONE = "none"
    BY_OWN_ID = "by_own_id"
    LIST_ECHO = "list_echo"
    LIST_NO_ECHO = "list_no_echo"


class LookupSees(StrEnum):
    """Whether the look-up lists every job or only ended ones (then absence proves nothing)."""

    ALL = "all"
    ENDED_ONLY = "ended_only"


class WebhookSupport(StrEnum):
    """Whether a call-back address can be given, per request or for the account."""

    NONE = "none"
    PER_REQUEST_URL = "per_request_url"
    ACCOUNT = "account"


class BillingExport(StrEnum):
    """The grain of the bill that can be fetched."""

    PER_REQUEST = "per_request"
    AGGREGATE = "aggregate"
    NONE = "none"


class CancelSupport(StrEnum):
    """`queued_only`: a running job can't be stopped; `signal`: it may be asked to stop, and may not."""

    NONE = "none"
    QUEUED_ONLY = "queued_only"
    SIGNAL = "signal"


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The contract of a provider, which decides what the engine may do after a lost answer.

    `evidence` says for each flag where it is documented. All times in seconds; None where the flag does not
    apply.
    """

    submit_idempotency: SubmitIdempotency
    lookup: Lookup
    lookup_sees: LookupSees
    lookup_window_seconds: int | None
    lookup_lag_seconds: int | None
    webhook: WebhookSupport
    webhook_signature: bool
    cancel: CancelSupport
    cost_in_status: bool
    billing_export: BillingExport
    max_job_seconds: int
    result_ttl_seconds: int
    evidence: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Order:
    """All that an adapter needs to write one submission. The same order always gives the same bytes.

    `key` is the idempotency key of the epoch. `marker` is the one an earlier `Submission` of this attempt
    named, to be repeated as it was; None lets the adapter derive it from `key` and `attempt_number`. `seed`
    is the user's own.
    """

    task_id: UUID
    attempt_number: int
    key: str
    model: ModelSpec
    prompt: str
    seconds: int
    resolution: str
    aspect_ratio: str
    audio: bool
    seed: int | None = None
    image_url: str | None = None
    webhook_url: str | None = None
    marker: str | None = None

    @property
    def endpoint(self) -> str:
        """The provider's own name of the model."""
        return self.model.endpoint


@dataclass(frozen=True, kw_only=True)
class Submission:
    """One request ready to be sent once, and the marker in it by which a list can be matched (None if it
    has none).
    """

    request: HttpRequest
    marker: str | None


@dataclass(frozen=True, kw_only=True)
class Job:
    """An accepted job. `handles` are the addresses the provider gave (`status_url`, `response_url`,
    `cancel_url`); empty when the job was bound by a call-back or a list.
    """

    upstream_id: str
    endpoint: str
    handles: Mapping[str, str] = field(default_factory=lambda: NO_HANDLES)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a job used. `unit` is empty where the answer names none: then it is the model's own `usage_unit`.

    `cost_micros` is the provider's cost in micro-dollars where the answer states money, else None.
    """

    units: Decimal
    unit: str = ""
    cost_micros: int | None = None

    @property
    def is_above_zero(self) -> bool:
        """Whether the answer states a cost (used by the rule on refused outputs)."""
        return self.units > 0 or bool(self.cost_micros)


# --- answers to a submission -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Accepted:
    upstream_id: str
    handles: Mapping[str, str] = field(default_factory=lambda: NO_HANDLES)
    queue_position: int | None = None


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A typed refusal: the job was not taken. `code`: input_invalid, prompt_refused or image_refused.

    `field` is ours (prompt, image, seconds, resolution, aspect_ratio, audio, seed) or None where it is not
    told.
    """

    code: str
    detail: str
    retryable: bool = False
    field: str | None = None


@dataclass(frozen=True, kw_only=True)
class Throttled:
    """Not taken because of too many requests, in the provider's own words."""

    retry_after_seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class AccountTrouble:
    """Our own account: key refused, locked, out of funds. An alarm, no failure of a task. Not executed."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class WrongAddress:
    """Something other than the provider's API seems to have answered: unclear, and an alarm."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Unclear:
    """Nobody can say whether the job was taken."""

    reason: str


SubmitAnswer = Accepted | Rejected | Throttled | AccountTrouble | WrongAddress | Unclear


# --- readings of a status ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Waiting:
    queue_position: int | None = None


@dataclass(frozen=True, kw_only=True)
class Running:
    """`progress` in whole per cent, None when the provider reports none."""

    progress: int | None = None


@dataclass(frozen=True, kw_only=True)
class Succeeded:
    """Ended: ask for the result. It may still turn out to be a failure."""


@dataclass(frozen=True, kw_only=True)
class ProviderFailed:
    """The provider ended the job without a video.

    `code` is of the message catalogue: provider_failed, input_invalid, prompt_refused, image_refused or
    output_withheld. `reason` keeps the provider's difference (failed, expired, rejected, an error type).
    `charged` is what the answer itself states as used; None when it states nothing.
    """

    code: str
    detail: str
    reason: str = "failed"
    retryable: bool = True
    field: str | None = None
    charged: Usage | None = None


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    pass


@dataclass(frozen=True, kw_only=True)
class ReadTrouble:
    """A failed read, never a failed task."""

    reason: str
    retry_after_seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class NotFound:
    """The provider does not know the id: back off until the maximum age, then a person."""


@dataclass(frozen=True, kw_only=True)
class UnseenWord:
    """A state word that no table knows: keep polling, count it, log it."""

    word: str


StatusReading = (
    Waiting
    | Running
    | Succeeded
    | ProviderFailed
    | Cancelled
    | ReadTrouble
    | NotFound
    | AccountTrouble
    | UnseenWord
)


# --- readings of a result ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Ready:
    """The video is at `url`; whether it may be fetched from there is judged by the download."""

    url: str
    usage: Usage | None = None


@dataclass(frozen=True, kw_only=True)
class NoUrl:
    """Success without a usable address: bounded retries, then failed with that reason."""


@dataclass(frozen=True, kw_only=True)
class NotReady:
    """The provider says that the job has not ended yet: go on polling its status."""


ResultReading = (
    Ready | NoUrl | NotReady | ProviderFailed | Cancelled | ReadTrouble | NotFound | AccountTrouble
)


# --- answers to a cancellation -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CancelRequested:
    """Taken as a wish; whether it was obeyed is told by the status."""


@dataclass(frozen=True, kw_only=True)
class AlreadyCompleted:
    pass


@dataclass(frozen=True, kw_only=True)
class CancelNotFound:
    pass


@dataclass(frozen=True, kw_only=True)
class CancelUnclear:
    reason: str


CancelAnswer = CancelRequested | AlreadyCompleted | CancelNotFound | CancelUnclear


# --- look-up and call-back ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LookupHit:
    """One job of the provider's list. `input` is what it says we sent (None if it does not say)."""

    upstream_id: str
    input: Mapping[str, Any] | None
    state: str
    sent_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class LookupPage:
    """A page of the list. `trouble` set: the page could not be read, and says nothing about absence."""

    found: Sequence[LookupHit] = ()
    next_cursor: str | None = None
    trouble: ReadTrouble | AccountTrouble | None = None


@dataclass(frozen=True, kw_only=True)
class WebhookNotice:
    """Which job a call-back speaks of. It only wakes an authenticated read; `word` is for the log."""

    upstream_id: str
    word: str


class WebhookRefused(Exception):
    """The call-back is not believed. `status` is the HTTP status to answer: 400, 401 or 503."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class NotSupported(Exception):
    """The engine asked for what the capability flags rule out: a defect of the caller."""


class SigningKeys(Protocol):
    """Where a signature's public keys come from (`videos.providers.jwks`)."""

    def current(self) -> Sequence[bytes]:
        """The raw Ed25519 public keys, from the cache while it is fresh. Raises `KeysUnavailable`."""

    def refetched(self) -> Sequence[bytes] | None:
        """The keys fetched anew for a signature that fits none, or None when it is too soon to ask again."""


class Provider(Protocol):
    """A provider adapter."""

    @property
    def name(self) -> str: ...

    @property
    def account(self) -> str:
        """A stable id of the provider account: a digest of key and address, never the key."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def result_origins(self) -> AllowedOrigins:
        """Where results may be downloaded from: pass it to `core.http.download`."""

    @property
    def signing_keys(self) -> SigningKeys | None:
        """The source of the call-back keys, to be passed to `verify_webhook`; None without signatures."""

    def submit(self, order: Order) -> Submission: ...

    def read_submit(self, response: HttpResponse) -> SubmitAnswer: ...

    def status(self, job: Job) -> HttpRequest: ...

    def read_status(self, response: HttpResponse) -> StatusReading: ...

    def result(self, job: Job) -> HttpRequest: ...

    def read_result(self, response: HttpResponse) -> ResultReading: ...

    def cancel(self, job: Job) -> HttpRequest:
        """Raises `NotSupported` where the contract has no cancellation."""

    def read_cancel(self, response: HttpResponse) -> CancelAnswer: ...

    def lookup(
        self, *, endpoint: str, since: datetime, until: datetime, cursor: str | None = None
    ) -> HttpRequest:
        """One page of the jobs of a model in a span of time. Raises `NotSupported` without a look-up."""

    def read_lookup(self, response: HttpResponse) -> LookupPage: ...

    def recognises(self, order: Order, hit: LookupHit) -> bool:
        """Whether the listed input is exactly what this order sends. Uniqueness, both ways, is the
        caller's.
        """

    def verify_webhook(
        self, headers: Mapping[str, str], raw_body: bytes, now: datetime, keys: SigningKeys | None = None
    ) -> None:
        """Check signature and age over the raw bytes (`keys` default: `signing_keys`). Raises
        `WebhookRefused`.
        """

    def read_webhook(self, raw_body: bytes) -> WebhookNotice:
        """Raises `WebhookRefused` (400) when the body names no job."""

    def scrub(self, text: str, limit: int = 2000) -> str:
        """Provider text made fit to be stored and shown: cleaned, capped, our secrets removed."""
