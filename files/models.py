from django.db import models
from django.db.models import Q

from core.constraints import is_integer
from core.ids import new_id


class StoredObject(models.Model):
    """One key of the storage. Bytes exist only under a key that has a row; only a `dead` key's bytes go.

    `pending`: being written. `published`: a file row shows it. `dead`: nothing shows it; housekeeping
    removes the bytes and then sets `removed_at`.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        PUBLISHED = "published"
        DEAD = "dead"

    key = models.CharField(primary_key=True, max_length=128)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    created_at = models.DateTimeField()
    dead_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state="dead", dead_at__isnull=False)
                | Q(state__in=["pending", "published"], dead_at__isnull=True, removed_at__isnull=True),
                name="files_only_dead_objects_are_removed",
            ),
        ]
        indexes = [
            models.Index(
                fields=["dead_at"],
                name="files_object_to_remove",
                condition=Q(state="dead", removed_at__isnull=True),
            ),
            models.Index(fields=["created_at"], name="files_object_pending", condition=Q(state="pending")),
        ]

    def __str__(self) -> str:
        return self.key


class StoredFile(models.Model):
    """A file in an owner's cloud space: an upload, or the result of a task."""

    class Kind(models.TextChoices):
        UPLOAD = "upload"
        RESULT = "result"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner_id = models.UUIDField()
    kind = models.CharField(max_length=8, choices=Kind)
    name = models.CharField(max_length=255)
    content_type = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    stored = models.OneToOneField(StoredObject, on_delete=models.PROTECT, related_name="file")
    task_id = models.UUIDField(null=True)  # the task whose result it is
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task_id"], name="files_one_result_per_task"),
            models.CheckConstraint(
                condition=Q(kind="result", task_id__isnull=False) | Q(kind="upload", task_id__isnull=True),
                name="files_result_names_its_task",
            ),
            models.CheckConstraint(
                condition=Q(size_bytes__gte=1) & is_integer("size_bytes"), name="files_file_is_not_empty"
            ),
        ]
        indexes = [models.Index(fields=["owner_id", "-created_at", "-id"], name="files_file_of_owner")]

    def __str__(self) -> str:
        return self.name
