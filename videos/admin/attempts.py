from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from core.admin import ReadOnlyAdmin, link_column, register
from videos.models import Attempt, OrphanJob

task = link_column("videos_videotask", "task_id", "task")
owner = link_column("billing_account", "owner_id", "owner")


@register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Every try at a provider. What the provider did not say is written as not reported, never as 0."""

    list_display = (
        *("started_at", task, "number", "outcome", "reason", "provider", "model", "upstream_id"),
        "http_status",
    )
    fields = readonly_fields = (
        *("id", task, owner, "number", "outcome", "reason", "upstream_id", "http_status"),
        *("usage_units", "usage_unit", "provider", "provider_account", "model", "key", "marker"),
        *("request_sha256", "response_sha256", "started_at", "finished_at", "late_check_at"),
    )

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        found = Q(upstream_id=words)
        return found | Q(pk=key) | Q(task_id=key) if key else found


@register(OrphanJob)
class OrphanJobAdmin(ReadOnlyAdmin):
    """Second jobs of one task: our loss, never a charge."""

    list_display = ("created_at", "upstream_id", "provider_account", task, "source")
    fields = readonly_fields = ("id", *list_display)

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        found = Q(upstream_id=words)
        return found | Q(pk=key) if key else found
