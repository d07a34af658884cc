"""What grows or does not: submit, taking due work, a page of a list; runs inside the product.

Each function does the same `count` times and tells the median in milliseconds. The operations are called
directly: what HTTP adds is the same on both sides and would only hide a difference.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from statistics import median
from typing import Any
from uuid import UUID

from django.utils import timezone

from tests.makers import order
from videos import operations, queries
from videos.engine import leases
from videos.models import VideoTask
from videos.queries import ListFilter

DUE = 5  # tasks due at a time: a quiet moment, in which a search through the past would show most
PAGE = 30


def submit(*, owner_id: str, count: int) -> float:
    def one() -> None:
        _submit(owner_id)

    told = _median_ms(one, count)
    _put_off()
    return told


def take_due(*, owner_id: str, count: int) -> float:
    def make_some_due() -> None:
        _put_off()
        for _ in range(DUE):
            _submit(owner_id)

    def take() -> None:
        taken = leases.take_due(work="dispatch", provider="fal", limit=100)
        if len(taken) != DUE:
            raise RuntimeError(f"{len(taken)} of {DUE} due tasks were taken")

    told = _median_ms(take, count, before=make_some_due)
    _put_off()
    return told


def list_page(*, owner_id: str, count: int, page: str, group: str = "all") -> float:
    """A page of the owner's list; whole on both sides, so that it costs the same to show."""
    chosen = ListFilter(group=group)
    before = None
    if page == "second":
        last = VideoTask.objects.filter(owner_id=UUID(owner_id)).order_by("-created_at", "-pk")[PAGE - 1]
        before = (last.created_at, last.pk)

    def read() -> None:
        views = queries.list_views(owner_id=UUID(owner_id), chosen=chosen, limit=PAGE + 1, before=before)
        if len(views) != PAGE + 1:
            raise RuntimeError(f"the page has {len(views)} rows")

    return _median_ms(read, count)


def _submit(owner_id: str) -> None:
    operations.submit_video(owner_id=UUID(owner_id), fields=order(), token=None, now=timezone.now())


def _put_off() -> None:
    """Nothing is due: the tasks of this run come back in a year."""
    VideoTask.objects.filter(next_check_at__lte=timezone.now() + timedelta(days=1)).update(
        next_check_at=timezone.now() + timedelta(days=365)
    )


def _median_ms(measured: Callable[[], Any], count: int, *, before: Callable[[], Any] | None = None) -> float:
    spent = []
    for _ in range(count):
        if before is not None:
            before()
        began = time.perf_counter()
        measured()
        spent.append(time.perf_counter() - began)
    return median(spent) * 1000
