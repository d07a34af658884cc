"""What a case looks at: rows that must be untouched, money in exact figures, and what each view says."""

import time
from collections.abc import Callable
from typing import Any

from django.apps import apps

from billing.models import Transfer
from tests.makers import Owner, get

NOT_OURS = ("admin", "auth", "contenttypes", "sessions", "account")  # Django's own tables


def rows() -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of the product, to be compared with the same a moment later."""
    return {model._meta.db_table: sorted(model.objects.values(), key=repr) for model in _models()}


def _models() -> list[Any]:
    return [model for model in apps.get_models() if model._meta.app_label not in NOT_OURS]


def changed_tables(before: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The tables in which anything differs from `before`, but for the time of a token's last use."""
    after = rows()
    return sorted(table for table in after if table != "accounts_apitoken" and after[table] != before[table])


def kinds_of(owner: Owner, client_id: str) -> list[str]:
    """The transfers about one video, oldest first."""
    return list(
        Transfer.objects.filter(charge__claim__owner_id=owner.id, charge__claim__client_id=client_id)
        .order_by("created_at", "id")
        .values_list("kind", flat=True)
    )


def refund_count(owner: Owner, client_id: str) -> int:
    return kinds_of(owner, client_id).count("refund")


def state_of(owner: Owner, client_id: str) -> tuple[str, str, str]:
    """State, charge state and message code, as the API tells them."""
    document = get(owner, client_id).json()
    return document["state"], document["charge"]["state"], document["message"]["code"]


def wait_for(what: Callable[[], Any], *, seconds: float = 10) -> Any:
    """The first true value of `what`. Raises: AssertionError when it stays false that long."""
    until = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
    return value
