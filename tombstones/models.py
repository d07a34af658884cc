from django.db import models
from django.db.models import Q

from core.ids import new_id


class ClaimState(models.TextChoices):
    LIVE = "live"
    BURIED = "buried"


class BurialReason(models.TextChoices):
    TASK_DELETED = "task_deleted"
    FILE_DELETED = "file_deleted"
    CANVAS_DELETED = "canvas_deleted"
    ABANDONED = "abandoned"


class Claim(models.Model):
    """The permanent row (owner, client task id): inserted first, never deleted.

    Its id is the task's id. A live claim has a task; a buried one is the tombstone and never has one again.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner_id = models.UUIDField()
    client_id = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=ClaimState, default=ClaimState.LIVE)
    reason = models.CharField(max_length=16, choices=BurialReason, null=True)
    created_at = models.DateTimeField()
    buried_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # The client's id first: staff look for it without knowing the owner, by the same index.
            models.UniqueConstraint(
                fields=["client_id", "owner_id"], name="tombstones_one_claim_per_owner_and_client_id"
            ),
            models.CheckConstraint(
                condition=(
                    Q(state=ClaimState.LIVE, reason__isnull=True, buried_at__isnull=True)
                    | Q(
                        state=ClaimState.BURIED,
                        reason__isnull=False,
                        reason__in=BurialReason.values,
                        buried_at__isnull=False,
                    )
                ),
                name="tombstones_buried_claim_has_reason_and_time",
            ),
            models.CheckConstraint(
                condition=Q(client_id__regex=r"^[A-Za-z0-9_-]{8,64}$"),
                name="tombstones_client_id_is_well_formed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.client_id} ({self.state})"
