"""Doors for workers. Each claims due rows from the database, so running one twice, or never, is safe."""

from celery import shared_task
from django.utils import timezone

from core import db
from core.nudge import nudge
from videos.engine import dispatch, late, polling, results, sweeping, unknowns


@shared_task
def dispatch_due() -> None:
    # One round: a worker that is told to stop ends this task and takes no further message, so it claims
    # nothing new, however much is due.
    if dispatch.dispatch_due(rounds=1):
        nudge("videos.tasks.dispatch_due")


@shared_task
def poll_due() -> None:
    polling.poll_due()


@shared_task
def store_due() -> None:
    results.store_due()


@shared_task
def check_unknown_due() -> None:
    unknowns.check_unknown_due()


@shared_task
def sweep() -> None:
    sweeping.sweep(now=timezone.now())
    late.follow_late_jobs()
    sweeping.note_sweep(now=db.now())
