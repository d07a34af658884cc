"""Celery: queues and schedule, as code.

The broker is a doorbell. Every task below claims due rows from the database, so a lost, repeated or late
message changes when something happens, never what happens.
"""

import os

from celery import Celery
from kombu import Exchange, Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings

TICK_SECONDS = 1  # the first status read is due two seconds after a submit; a slower tick would show

app = Celery("oncereel")
app.set_default()  # else `current_app` is this one in the importing thread alone; bells ring in another
app.conf.update(settings.CELERY)
QUEUES = ("dispatch", "polling", "results", "housekeeping")
app.conf.task_queues = [Queue(name, Exchange(name), routing_key=name) for name in QUEUES]
app.conf.task_routes = {
    "videos.tasks.dispatch_*": {"queue": "dispatch"},
    "videos.tasks.poll_*": {"queue": "polling"},
    "videos.tasks.check_*": {"queue": "polling"},
    "videos.tasks.store_*": {"queue": "results"},
}


def every(seconds: float, task: str) -> dict[str, object]:
    """A beat entry whose message dies when the next one is due, so that a stopped worker finds no backlog."""
    return {"task": task, "schedule": seconds, "options": {"expires": max(seconds, 2)}}


app.conf.beat_schedule = {
    "dispatch": every(TICK_SECONDS, "videos.tasks.dispatch_due"),
    "poll": every(TICK_SECONDS, "videos.tasks.poll_due"),
    "store": every(TICK_SECONDS, "videos.tasks.store_due"),
    "check-unknown": every(TICK_SECONDS, "videos.tasks.check_unknown_due"),
    "sweep": every(settings.SWEEP_SECONDS, "videos.tasks.sweep"),
    "remove-dead-files": every(settings.SWEEP_SECONDS, "files.tasks.remove_dead"),
}
app.autodiscover_tasks()
