"""`/metrics`: what waits, since when, and for whom, in the text format of Prometheus.

Every figure is read from the database at the scrape, so it is the same whichever process answers. No query
looks at finished tasks: those are in none of the partial indexes used here.
"""

import ipaddress
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Case, CharField, Count, Min, Q, QuerySet, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from core import db
from files.models import StoredObject
from videos.desk_queues import queue_condition
from videos.engine.leases import WORK
from videos.models import Attempt, OrphanJob, ProviderStatus, Sweep, VideoTask, WebhookCall
from videos.providers.registry import provider_names
from videos.states import FINAL

LATE, CALL = "late", "call"  # work that is not a task's own: jobs of refunded tasks, call-backs to confirm
ANY_PROVIDER = ""  # of work whose rows name none
NOTHING_DUE: dict[str, Any] = {"count": 0, "due": 0, "oldest_due": None}
# Only a proxy sets these; what came through one on this machine was sent from anywhere.
PROXY_HEADERS = ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP")


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The gauges, for a scraper on this machine or with the token; for everybody else nothing is here."""
    if not (_is_loopback(request) or _has_token(request)):
        raise Http404
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Reading(db.now()))
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry), content_type=content_type, headers={"Cache-Control": "no-store"})


def _is_loopback(request: HttpRequest) -> bool:
    """Whether the scraper is on this machine and no proxy stands between."""
    if any(name in PROXY_HEADERS or name.startswith("HTTP_X_FORWARDED_") for name in request.META):
        return False
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:  # a Unix socket has none
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _has_token(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    expected = str(settings.METRICS_TOKEN)
    return (
        bool(expected)
        and scheme.lower() in ("bearer", "token")
        and secrets.compare_digest(token.strip().encode(), expected.encode())
    )


class _Reading(Collector):
    """All gauges as they stand at one moment."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: registering must not cost a reading of its own."""
        return []

    def collect(self) -> Iterable[Metric]:
        yield from self._work()
        yield from self._desk()
        yield from self._alarms()
        yield from self._housekeeping()

    def _work(self) -> Iterable[Metric]:
        names = ("work", "provider")
        unfinished = GaugeMetricFamily(
            "oncereel_unfinished_tasks", "Tasks that have not ended.", labels=names
        )
        due = GaugeMetricFamily(
            "oncereel_due", "Rows that a worker should take now: the depth of each queue.", labels=names
        )
        overdue = GaugeMetricFamily(
            "oncereel_oldest_overdue_seconds",
            "How long the oldest due row has waited; grows when workers, schedule or a provider stand still.",
            labels=names,
        )
        found = {(row["work"], row["provider"]): row for row in unfinished_by_work(self.now)}
        providers = sorted({*provider_names(), *(provider for _, provider in found)})
        for labels in [(work, provider) for work in WORK for provider in providers]:
            row = found.get(labels, NOTHING_DUE)
            unfinished.add_metric(labels, row["count"])
            due.add_metric(labels, row["due"])
            overdue.add_metric(labels, self._age(row["oldest_due"]))
        for work, provider, row in self._other_work():
            due.add_metric((work, provider), row["due"])
            overdue.add_metric((work, provider), self._age(row["oldest_due"]))
        charge = GaugeMetricFamily(
            "oncereel_oldest_unresolved_charge_seconds",
            "Age of the oldest charge that is neither settled nor refunded.",
            value=self._age(min((row["oldest"] for row in found.values()), default=None)),
        )
        return unfinished, due, overdue, charge

    def _other_work(self) -> Iterable[tuple[str, str, dict[str, Any]]]:
        late = {row["provider"]: row for row in late_jobs_due(self.now)}
        for provider in sorted({*provider_names(), *late}):
            yield LATE, provider, late.get(provider, NOTHING_DUE)
        yield CALL, ANY_PROVIDER, calls_due(self.now)

    def _desk(self) -> Iterable[Metric]:
        row = waiting_for_a_person(self.now)
        for name, help_text, value in (
            ("oncereel_unknown_tasks", "Tasks whose fate at the provider is unknown.", row["unclear"]),
            (
                "oncereel_oldest_unknown_seconds",
                "For how long the oldest of them has been unclear.",
                self._age(row["oldest"]),
            ),
            ("oncereel_review_tasks", "Unknown tasks that need a person's review.", row["review"]),
            ("oncereel_stuck_tasks", "Running tasks older than their model's maximum.", row["stuck"]),
        ):
            yield GaugeMetricFamily(name, help_text, value=value)

    def _alarms(self) -> Iterable[Metric]:
        alarm = GaugeMetricFamily(
            "oncereel_provider_alarm", "1 while our account or address is refused there.", labels=["provider"]
        )
        since = GaugeMetricFamily(
            "oncereel_provider_alarm_since_timestamp_seconds",
            "When the present alarm began.",
            labels=["provider"],
        )
        begun = dict(
            ProviderStatus.objects.filter(alarm__isnull=False).values_list("provider", "alarm_since")
        )
        for provider in sorted({*provider_names(), *begun}):
            alarm.add_metric([provider], int(provider in begun))
            if at := begun.get(provider):
                since.add_metric([provider], at.timestamp())
        return alarm, since

    def _housekeeping(self) -> Iterable[Metric]:
        swept = Sweep.objects.aggregate(last=Min("ended_at"))["last"]
        yield GaugeMetricFamily(
            "oncereel_sweeper_lag_seconds",
            "How long ago housekeeping last ran to its end; 0 before it ever did.",
            value=self._age(swept),
        )
        objects = dead_objects().aggregate(count=Count("pk"), oldest=Min("dead_at"))
        for name, help_text, value in (
            ("oncereel_dead_objects", "Stored keys whose bytes are to be removed.", objects["count"]),
            (
                "oncereel_oldest_dead_object_seconds",
                "For how long the oldest has waited.",
                self._age(objects["oldest"]),
            ),
            (
                "oncereel_tasks_to_bury",
                "Ended tasks whose owner has deleted them already.",
                tasks_to_bury().count(),
            ),
            ("oncereel_orphan_jobs", "Second jobs of one task, ever: our loss.", OrphanJob.objects.count()),
        ):
            yield GaugeMetricFamily(name, help_text, value=value)

    def _age(self, since: datetime | None) -> float:
        return max(0.0, (self.now - since).total_seconds()) if since else 0.0


def unfinished_tasks() -> QuerySet[VideoTask]:
    """Written as the condition of the index `videos_task_due`, which holds these alone."""
    return VideoTask.objects.filter(next_check_at__isnull=False)


def unfinished_by_work(now: datetime) -> QuerySet[Any, Any]:
    """Of each kind of work and provider: tasks, how many are due, the oldest due time and the oldest charge.

    A task that has not ended has exactly one unresolved charge, made in its transaction and at its time; so
    the charges themselves, which are kept for ever, need not be searched.
    """
    work = Case(
        *(When(condition, then=Value(name)) for name, condition in WORK.items()), output_field=CharField()
    )
    due = Q(next_check_at__lte=now)
    return (
        unfinished_tasks()
        .order_by()
        .values("provider", work=work)
        .annotate(
            count=Count("pk"),
            due=Count("pk", filter=due),
            oldest_due=Min("next_check_at", filter=due),
            oldest=Min("created_at"),
        )
    )


def waiting_for_a_person(now: datetime) -> dict[str, Any]:
    """How many tasks each queue of the desk has, as its front page counts them, and since when."""
    counts = {name: Count("pk", filter=queue_condition(name, now)) for name in ("unclear", "review", "stuck")}
    unclear = Min("first_unclear_at", filter=queue_condition("unclear", now))
    return unfinished_tasks().aggregate(**counts, oldest=unclear)


def late_jobs_due(now: datetime) -> QuerySet[Any, Any]:
    """Of each provider: jobs of refunded tasks that are to be read."""
    jobs = Attempt.objects.filter(late_check_at__isnull=False, late_check_at__lte=now).order_by()
    return jobs.values("provider").annotate(due=Count("pk"), oldest_due=Min("late_check_at"))


def calls_due(now: datetime) -> dict[str, Any]:
    """Call-backs whose news the provider itself is to confirm."""
    calls = WebhookCall.objects.filter(check_at__isnull=False, check_at__lte=now)
    return calls.aggregate(due=Count("pk"), oldest_due=Min("check_at"))


def dead_objects() -> QuerySet[StoredObject]:
    return StoredObject.objects.filter(state=StoredObject.State.DEAD, removed_at__isnull=True)


def tasks_to_bury() -> QuerySet[VideoTask]:
    return VideoTask.objects.filter(delete_requested_at__isnull=False, state__in=FINAL)
