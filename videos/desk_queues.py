"""What waits for a person: how many, since when, and how much money is held meanwhile."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, Q, Sum

from videos.models import ProviderStatus, VideoTask
from videos.states import State


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A queue as the front page shows it. `held_micros`: of the tasks in it, in micro-units."""

    name: str
    title: str
    count: int
    oldest: datetime | None
    held_micros: int


def queue_condition(name: str, now: datetime) -> Q:
    """Which tasks are in a queue of the desk. Raises: KeyError."""
    review_before = now - timedelta(seconds=settings.UNKNOWN_REVIEW_AFTER)
    return {
        "unclear": Q(state=State.UNKNOWN),
        "review": Q(state=State.UNKNOWN, first_unclear_at__lt=review_before),
        "stuck": Q(state=State.PROCESSING, stuck_alerted_at__isnull=False),
    }[name]


QUEUES = {"unclear": "Unclear", "review": "Needs review", "stuck": "Stuck"}
_SINCE = {"unclear": "first_unclear_at", "review": "first_unclear_at", "stuck": "accepted_at"}


def tiles(*, now: datetime) -> list[Tile]:
    """All queues, and the providers that we cannot send to with what waits for them."""
    found = [_task_tile(name, title, now) for name, title in QUEUES.items()]
    alarms = ProviderStatus.objects.filter(alarm__isnull=False)
    figures = alarms.aggregate(count=Count("pk"), oldest=Min("alarm_since"))
    waiting = VideoTask.objects.filter(state=State.SUBMITTING, provider__in=alarms.values("provider"))
    held = waiting.aggregate(held=Sum("claim__charge__amount_micros"))["held"] or 0
    found.append(
        Tile(
            name="alarms",
            title="Provider alarms",
            count=figures["count"],
            oldest=figures["oldest"],
            held_micros=held,
        )
    )
    return found


def _task_tile(name: str, title: str, now: datetime) -> Tile:
    figures = VideoTask.objects.filter(queue_condition(name, now)).aggregate(
        count=Count("pk"), oldest=Min(_SINCE[name]), held=Sum("claim__charge__amount_micros")
    )
    return Tile(
        name=name,
        title=title,
        count=figures["count"],
        oldest=figures["oldest"],
        held_micros=figures["held"] or 0,
    )
