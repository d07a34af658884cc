from django.conf import settings
from django.db import models
from django.db.models import Q

from core.constraints import is_integer
from core.ids import new_id
from tombstones.models import Claim
from videos.states import EvidenceKind, Outcome, Phase, State


def _choices(values: type[State] | type[Phase] | type[Outcome] | type[EvidenceKind]) -> list[tuple[str, str]]:
    return [(item.value, item.value) for item in values]


class VideoTask(models.Model):
    """One paid request for one video. Its id is its claim's id."""

    claim = models.OneToOneField(
        Claim, primary_key=True, on_delete=models.PROTECT, related_name="task", db_column="id"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    client_id = models.CharField(max_length=64)
    request_hash = models.CharField(max_length=72)  # version and SHA-256 of the fields as sent
    # What was ordered, as it stood at submit; a changed catalogue changes nothing here.
    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=64)
    seconds = models.PositiveSmallIntegerField()
    resolution = models.CharField(max_length=16)
    aspect_ratio = models.CharField(max_length=8)
    audio = models.BooleanField()
    seed = models.BigIntegerField(null=True)

    state = models.CharField(max_length=10, choices=_choices(State))
    created_at = models.DateTimeField()
    entered_state_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    error_code = models.CharField(max_length=40, null=True)  # of the message catalogue; set when failed
    error_params = models.JSONField(default=dict)  # the figures of its sentence
    error_detail = models.CharField(max_length=2000, blank=True, default="")  # the provider's words, cleaned

    # Work: due when next_check_at has passed. Taking the work moves next_check_at to the lease's end.
    next_check_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)  # failed tries in a row of what is being done now
    first_try_at = models.DateTimeField(null=True)  # when that row of failures began
    wait_reason = models.CharField(max_length=20, null=True)  # provider_busy, sending_again
    # Seconds of provider alarm before this task entered `submitting`; the give-up clock stands still in one.
    paused_seconds_before = models.FloatField(default=0)

    phase = models.CharField(max_length=8, choices=_choices(Phase), null=True)
    progress = models.PositiveSmallIntegerField(null=True)
    queue_position = models.PositiveIntegerField(null=True)
    first_unclear_at = models.DateTimeField(null=True)
    stuck_alerted_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_sent_at = models.DateTimeField(null=True)
    delete_requested_at = models.DateTimeField(null=True)
    result_file_id = models.UUIDField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in State]), name="videos_task_state_is_known"
            ),
            models.CheckConstraint(
                condition=(
                    Q(
                        state__in=["completed", "failed"],
                        finished_at__isnull=False,
                        next_check_at__isnull=True,
                    )
                    | Q(
                        state__in=["submitting", "unknown", "processing"],
                        finished_at__isnull=True,
                        next_check_at__isnull=False,
                    )
                ),
                name="videos_only_unfinished_tasks_are_due",
            ),
            models.CheckConstraint(
                condition=(
                    Q(state="failed", error_code__isnull=False)
                    | (~Q(state="failed") & Q(error_code__isnull=True))
                ),
                name="videos_failed_task_has_a_reason",
            ),
            models.CheckConstraint(
                condition=~Q(state="completed") | Q(result_file_id__isnull=False),
                name="videos_completed_task_has_a_result",
            ),
            models.CheckConstraint(
                condition=Q(progress__isnull=True) | Q(progress__lt=100) | Q(progress=100, state="completed"),
                name="videos_progress_is_100_only_when_completed",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["processing", "completed"]) | Q(accepted_at__isnull=False),
                name="videos_running_task_was_accepted",
            ),
            models.CheckConstraint(
                condition=~Q(state="unknown") | Q(first_unclear_at__isnull=False),
                name="videos_unknown_task_has_an_unclear_time",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-created_at", "-claim"], name="videos_task_of_owner"),
            models.Index(
                fields=["owner", "-created_at"],
                name="videos_unfinished_of_owner",
                condition=Q(finished_at__isnull=True),
            ),
            models.Index(
                fields=["owner", "-created_at"],
                name="videos_failed_of_owner",
                condition=Q(state="failed"),
            ),
            # Finding due work costs what is due: finished tasks are not in this index.
            models.Index(
                fields=["state", "provider", "next_check_at"],
                name="videos_task_due",
                condition=Q(next_check_at__isnull=False),
            ),
            models.Index(
                fields=["delete_requested_at"],
                name="videos_task_to_bury",
                condition=Q(delete_requested_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.client_id} ({self.state})"


class Payload(models.Model):
    """The erasable words of a task: its prompt and the request as sent. Scrubbed at burial."""

    task = models.OneToOneField(VideoTask, primary_key=True, on_delete=models.PROTECT, related_name="payload")
    prompt = models.TextField()
    request = models.JSONField()  # the fields as sent

    def __str__(self) -> str:
        return f"payload of {self.task_id}"


class Attempt(models.Model):
    """One try at one upstream submission. Refers to its task by plain UUID and survives it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    task_id = models.UUIDField()
    owner_id = models.UUIDField()
    number = models.PositiveSmallIntegerField()
    key = models.CharField(max_length=64)  # the epoch's idempotency key
    marker = models.CharField(max_length=64, null=True)  # by which a list is matched
    request_sha256 = models.CharField(max_length=64)
    provider = models.CharField(max_length=32)
    provider_account = models.CharField(max_length=64)
    model = models.CharField(max_length=64)
    outcome = models.CharField(max_length=8, choices=_choices(Outcome), default=Outcome.INFLIGHT.value)
    reason = models.CharField(max_length=64, blank=True, default="")
    upstream_id = models.CharField(max_length=128, null=True)
    handles = models.JSONField(default=dict)  # addresses the provider gave
    http_status = models.PositiveSmallIntegerField(null=True)
    response_sha256 = models.CharField(max_length=64, blank=True, default="")
    usage_units = models.DecimalField(max_digits=20, decimal_places=6, null=True)
    usage_unit = models.CharField(max_length=16, blank=True, default="")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    # A job of a refunded task is followed until it is final; its video is then a gift.
    late_check_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task_id", "number"], name="videos_attempts_are_numbered_once"),
            models.UniqueConstraint(
                fields=["provider_account", "upstream_id"], name="videos_upstream_id_bound_to_one_attempt"
            ),
            models.UniqueConstraint(
                fields=["task_id"],
                condition=Q(outcome="inflight"),
                name="videos_one_attempt_in_flight_per_task",
            ),
            models.UniqueConstraint(
                fields=["task_id"],
                condition=Q(outcome="accepted"),
                name="videos_one_accepted_attempt_per_task",
            ),
            models.CheckConstraint(
                condition=Q(outcome="inflight", finished_at__isnull=True)
                | (~Q(outcome="inflight") & Q(finished_at__isnull=False)),
                name="videos_attempt_in_flight_has_no_end",
            ),
            models.CheckConstraint(
                condition=Q(outcome="accepted", upstream_id__isnull=False)
                | (~Q(outcome="accepted") & Q(upstream_id__isnull=True)),
                name="videos_accepted_attempt_has_an_upstream_id",
            ),
        ]
        indexes = [
            models.Index(
                fields=["provider", "late_check_at"],
                name="videos_attempt_late",
                condition=Q(late_check_at__isnull=False),
            ),
            models.Index(fields=["upstream_id"], name="videos_attempt_upstream"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.task_id}"


class AttemptPayload(models.Model):
    """The erasable bodies of an attempt; the attempt keeps their hashes."""

    attempt = models.OneToOneField(
        Attempt, primary_key=True, on_delete=models.PROTECT, related_name="payload"
    )
    request_body = models.TextField()
    response_body = models.TextField(blank=True, default="")  # size-capped, secrets removed

    def __str__(self) -> str:
        return f"bodies of {self.attempt_id}"


class Evidence(models.Model):
    """Why something about an attempt's fate is believed. Append-only, survives the task."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    task_id = models.UUIDField(db_index=True)
    attempt_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=16, choices=_choices(EvidenceKind))
    source = models.CharField(max_length=64)  # provider, policy, or the staff member's name
    upstream_id = models.CharField(max_length=128, blank=True, default="")
    reason = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.kind} for {self.task_id}"


class TaskEvent(models.Model):
    """One change of a task's state, or a wish about it. Append-only, survives the task."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    task_id = models.UUIDField()
    from_state = models.CharField(max_length=10, blank=True, default="")
    to_state = models.CharField(max_length=10)
    cause = models.CharField(max_length=64)
    actor = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["task_id", "created_at"], name="videos_event_of_task")]

    def __str__(self) -> str:
        return f"{self.from_state or 'new'} → {self.to_state}"


class WebhookCall(models.Model):
    """A signed call-back that named one of our tasks. It only wakes a read; repeats are one row."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    task_id = models.UUIDField()
    upstream_id = models.CharField(max_length=128)
    word = models.CharField(max_length=64)
    calls = models.PositiveIntegerField(default=1)
    received_at = models.DateTimeField()
    check_at = models.DateTimeField(null=True)  # when the provider itself is to be asked; empty: was asked
    tries = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["task_id", "upstream_id"], name="videos_one_call_row_per_task_and_job"
            ),
        ]
        indexes = [
            models.Index(fields=["check_at"], name="videos_call_due", condition=Q(check_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"call for {self.task_id}"


class OrphanJob(models.Model):
    """A job of the provider that no attempt can own: a second job of one task. Our loss, never a charge."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    provider_account = models.CharField(max_length=64)
    upstream_id = models.CharField(max_length=128)
    task_id = models.UUIDField()
    source = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["provider_account", "upstream_id"], name="videos_orphan_job_is_noted_once"
            ),
        ]

    def __str__(self) -> str:
        return self.upstream_id


class Sweep(models.Model):
    """When housekeeping last ran to its end: one row, written by every run."""

    name = models.CharField(primary_key=True, max_length=16)
    ended_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.ended_at}"


class ProviderStatus(models.Model):
    """Whether we can send to a provider now, and how long in total we could not."""

    provider = models.CharField(primary_key=True, max_length=32)
    alarm = models.CharField(max_length=64, null=True)  # the reason; empty when there is none
    alarm_since = models.DateTimeField(null=True)
    probe_at = models.DateTimeField(null=True)  # when one task may be tried again
    paused_seconds = models.FloatField(default=0)  # of ended alarms
    daily_spend_limit_micros = models.BigIntegerField(null=True, blank=True)  # charged a day (UTC)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(alarm__isnull=True, alarm_since__isnull=True, probe_at__isnull=True)
                | Q(alarm__isnull=False, alarm_since__isnull=False, probe_at__isnull=False),
                name="videos_alarm_has_a_time_and_a_probe",
            ),
            models.CheckConstraint(
                condition=(Q(daily_spend_limit_micros__isnull=True) | Q(daily_spend_limit_micros__gte=0))
                & is_integer("daily_spend_limit_micros"),
                name="videos_provider_limit_is_whole_and_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return self.provider
