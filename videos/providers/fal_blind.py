"""The wire of fal with every capability flag off: contract P5, for tests and drills.

A lost answer of this provider can be recovered from nothing but a bill, a person or the time limit.
"""

from types import MappingProxyType

from videos.providers.base import (
    BillingExport,
    CancelSupport,
    Capabilities,
    Lookup,
    LookupSees,
    SubmitIdempotency,
    WebhookSupport,
)

BLIND_CAPABILITIES = Capabilities(
    submit_idempotency=SubmitIdempotency.NONE,
    lookup=Lookup.NONE,
    lookup_sees=LookupSees.ENDED_ONLY,
    lookup_window_seconds=None,
    lookup_lag_seconds=None,
    webhook=WebhookSupport.NONE,
    webhook_signature=False,
    cancel=CancelSupport.NONE,
    cost_in_status=False,
    billing_export=BillingExport.NONE,
    max_job_seconds=3600,
    result_ttl_seconds=3600,
    evidence=MappingProxyType({"all": "By definition: the contract of a provider that offers nothing."}),
)
