"""Provider alarms: trouble with our own account or address. Tasks wait; nothing fails in bulk."""

from datetime import datetime, timedelta
from typing import Literal

import structlog
from django.conf import settings
from django.db.models import F

from core import db
from videos.models import ProviderStatus

log = structlog.get_logger(__name__)

# What raised an alarm decides what may end it: a status read says nothing about whether we may submit.
SUBMIT, READ = "submit", "read"
Source = Literal["submit", "read"]


@db.transaction
def raise_alarm(*, provider: str, source: Source, reason: str, now: datetime) -> None:
    """Note that we cannot use a provider now; one already noted keeps its beginning."""
    probe_at = now + timedelta(seconds=settings.PROVIDER_PROBE_SECONDS)
    ProviderStatus.objects.get_or_create(provider=provider)
    alarm = f"{source}:{reason}"[:64]
    begun = ProviderStatus.objects.filter(provider=provider, alarm__isnull=True).update(
        alarm=alarm, alarm_since=now, probe_at=probe_at
    )
    if begun:
        log.error("provider_alarm", provider=provider, reason=alarm)
    elif source == SUBMIT:  # the more serious trouble, which only a submit can end
        ProviderStatus.objects.filter(provider=provider, alarm__startswith=READ).update(alarm=alarm)


@db.transaction
def clear_alarm(*, provider: str, source: Source, now: datetime) -> None:
    """End an alarm after the provider answered as it should, and count how long it lasted."""
    status = ProviderStatus.objects.select_for_update().filter(provider=provider, alarm__isnull=False).first()
    if status is None or (source == READ and not str(status.alarm).startswith(READ)):
        return
    lasted = (now - status.alarm_since).total_seconds() if status.alarm_since else 0.0
    ProviderStatus.objects.filter(pk=provider).update(
        alarm=None, alarm_since=None, probe_at=None, paused_seconds=F("paused_seconds") + max(0.0, lasted)
    )
    log.info("provider_alarm_over", provider=provider, seconds=round(lasted, 1))


def sendable(*, provider: str, limit: int, now: datetime) -> int:
    """How many tasks may be sent now: `limit`, or in an alarm one now and then, or none."""
    status = ProviderStatus.objects.filter(provider=provider, alarm__isnull=False).first()
    if status is None:
        return limit
    probing = ProviderStatus.objects.filter(provider=provider, alarm__isnull=False, probe_at__lte=now).update(
        probe_at=now + timedelta(seconds=settings.PROVIDER_PROBE_SECONDS)
    )
    return 1 if probing else 0


def has_alarm(*, provider: str) -> bool:
    return ProviderStatus.objects.filter(provider=provider, alarm__isnull=False).exists()
