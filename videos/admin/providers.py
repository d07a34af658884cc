from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from core.admin import ReadOnlyAdmin, amount_column, register
from videos.models import ProviderStatus

limit = amount_column("daily_spend_limit_micros", "limit a day")


@register(ProviderStatus)
class ProviderStatusAdmin(ReadOnlyAdmin):
    """Which providers we cannot send to now, why, and since when."""

    ordering = ("provider",)
    list_display = ("provider", "alarm", "alarm_since", "probe_at", limit)
    fields = readonly_fields = (*list_display, "paused_seconds")
    empty_value_display = "none"

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        return Q(provider=words)
