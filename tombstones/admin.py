from collections.abc import Sequence
from uuid import UUID

from django.contrib import admin
from django.db.models import Q
from django.utils.safestring import SafeString

from core.admin import ReadOnlyAdmin, link_column, link_to, register
from tombstones.models import Claim, ClaimState

owner = link_column("billing_account", "owner_id", "owner")


@register(Claim)
class ClaimAdmin(ReadOnlyAdmin):
    """Every id that was ever seen, with its tombstone if it was buried."""

    list_display = ("client_id", "state", "reason", owner, "created_at", "buried_at", "record")
    fields = readonly_fields = (
        *("id", owner, "client_id", "state", "reason", "created_at", "buried_at", "record"),
    )
    empty_value_display = "none"

    @admin.display(description="what happened")
    def record(self, claim: Claim) -> SafeString | str | None:
        if claim.state == ClaimState.BURIED and claim.reason == "abandoned":
            return "never accepted"
        return link_to("videos_videotask", claim.pk, "record")

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        found = Q(client_id=str(key) if key else words) | Q(owner_id__in=owners)
        return found | Q(pk=key) if key else found
