"""Background work of files."""

from celery import shared_task
from django.utils import timezone

from files import operations


@shared_task
def remove_dead() -> None:
    operations.remove_dead(now=timezone.now())
