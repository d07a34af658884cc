"""How long things may take before somebody looks, or policy decides. Seconds."""

from django.conf import settings

from videos.catalogue import get_model
from videos.providers.base import BillingExport, Provider

UNNAMED_MODEL_SECONDS = 3600  # a model that has left the catalogue


def max_age_seconds(model: str) -> int:
    """How old a running job may get before it is stuck: MAX_JOB_SECONDS, else the model's own maximum."""
    spec = get_model(model)
    return int(settings.MAX_JOB_SECONDS or (spec.max_job_seconds if spec else UNNAMED_MODEL_SECONDS))


def give_up_seconds(provider: Provider) -> int:
    """How long a fate may stay unknown: the limit, and not before a bill per request could have told it."""
    limit = int(settings.UNKNOWN_GIVE_UP_AFTER)
    if provider.capabilities.billing_export != BillingExport.PER_REQUEST:
        return limit
    longest = int(settings.MAX_JOB_SECONDS or provider.capabilities.max_job_seconds)
    return max(limit, longest + int(settings.BILL_LAG_SECONDS))
