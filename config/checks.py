"""System checks that refuse an unsafe production. "Production" means `DEBUG=false`.

What would lose money or memory is refused by every command. What only a deployment can know (addresses, keys)
is asked by `manage.py check --deploy`, what only a database can tell by `manage.py check --database default`.
"""

import os
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.db import connection

from core import invariants
from videos.providers.base import WebhookSupport
from videos.providers.registry import get_provider, provider_names

SHORTEST_SECRET = 50  # characters; Django's own warning begins there too
LEASE_MARGIN_SECONDS = 5  # between the last byte of a submit and its lease's end: writing the answer down
LOOPBACK = {"localhost", "127.0.0.1", "[::1]", "::1", ".localhost", "testserver"}


@register(Tags.security)
def check_production(**_: Any) -> list[CheckMessage]:
    """The secret, the debug pages and the crash points."""
    found: list[CheckMessage] = []
    secret = str(settings.SECRET_KEY)
    if not settings.DEBUG and (len(secret) < SHORTEST_SECRET or secret.startswith("django-insecure-")):
        found.append(
            Error(
                "SECRET_KEY is short or a default: call-back addresses and sessions could be forged.",
                hint=f"Leave it out to have one made in DATA_DIR, or set {SHORTEST_SECRET} random letters.",
                id="oncereel.E001",
            )
        )
    strangers = [host for host in settings.ALLOWED_HOSTS if host not in LOOPBACK]
    if settings.DEBUG and strangers:
        found.append(
            Error(
                f"DEBUG is on and ALLOWED_HOSTS has {', '.join(strangers)}: error pages would show secrets.",
                hint="Set DEBUG=false.",
                id="oncereel.E002",
            )
        )
    if not settings.DEBUG and os.environ.get("CRASH_AT"):
        found.append(
            Error(
                "CRASH_AT is set: this process would end itself in the middle of a payment.",
                hint="Unset it; crash points are for tests, with DEBUG=true.",
                id="oncereel.E003",
            )
        )
    return found


@register()
def check_times(**_: Any) -> list[CheckMessage]:
    """Leases outlast what they cover; a task is reviewed before it is given up."""
    found: list[CheckMessage] = []
    longest_submit = settings.SUBMIT_CONNECT_SECONDS + settings.SUBMIT_READ_SECONDS
    if longest_submit + LEASE_MARGIN_SECONDS >= settings.LEASE_SECONDS:
        found.append(
            Error(
                f"LEASE_SECONDS={settings.LEASE_SECONDS} can run out during a submit of up to "
                f"{longest_submit:g} s: a second worker would take the task.",
                hint=f"Set more than {longest_submit + LEASE_MARGIN_SECONDS:g}.",
                id="oncereel.E004",
            )
        )
    if settings.UNKNOWN_GIVE_UP_AFTER <= settings.UNKNOWN_REVIEW_AFTER:
        found.append(
            Warning(
                "UNKNOWN_GIVE_UP_AFTER is not above UNKNOWN_REVIEW_AFTER: no person sees a task before it is "
                "given up.",
                id="oncereel.W001",
            )
        )
    return found


@register()
def check_markup(**_: Any) -> list[CheckMessage]:
    """The markup is a number, and above what would sell at a loss."""
    try:
        markup = Decimal(settings.PRICE_MARKUP)
    except InvalidOperation:
        markup = Decimal("NaN")
    if not markup.is_finite() or markup <= 0:
        return [Error(f"PRICE_MARKUP={settings.PRICE_MARKUP} is not a positive number.", id="oncereel.E005")]
    if markup < 1:
        return [Warning(f"PRICE_MARKUP={settings.PRICE_MARKUP} sells below cost.", id="oncereel.W002")]
    return []


@register(Tags.security, deploy=True)
def check_providers(**_: Any) -> list[CheckMessage]:
    """Keys of providers, the source that proves their call-backs, and the address these go to."""
    found: list[CheckMessage] = []
    if not settings.FAL_KEY:
        found.append(
            Error("FAL_KEY is not set: nothing could be sent.", hint="Set FAL_KEY.", id="oncereel.E006")
        )
    calls_back = any(
        get_provider(name).capabilities.webhook != WebhookSupport.NONE for name in provider_names()
    )
    if calls_back and not settings.FAL_JWKS_URL:
        found.append(
            Error(
                "FAL_JWKS_URL is not set: call-backs could not be verified.",
                hint="Set the address of the provider's public keys.",
                id="oncereel.E007",
            )
        )
    if calls_back and urlsplit(settings.PUBLIC_BASE_URL).scheme != "https":
        found.append(
            Warning(
                f"PUBLIC_BASE_URL={settings.PUBLIC_BASE_URL} is not https: call-backs travel readable, and "
                "cookies are not marked secure.",
                id="oncereel.W003",
            )
        )
    return found


@register(deploy=True)
def check_quarantine(**_: Any) -> list[CheckMessage]:
    if not settings.QUARANTINE:
        return []
    return [
        Info(
            "QUARANTINE is on: ids that were not seen are answered 503 until it is switched off.",
            hint="Reconcile the tail that the backup lost, then unset it.",
            id="oncereel.I001",
        )
    ]


@register(Tags.database)
def check_database(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Commits are durable, and every trigger is there and as declared."""
    if "default" not in (databases or ()):
        return []
    return [*_durability(), *_triggers(), *_ownership()]


def _durability() -> list[CheckMessage]:
    if connection.vendor == "sqlite":
        unsafe = [
            f"PRAGMA {name} is {value}"
            for name, least in (("synchronous", 2), ("recursive_triggers", 1), ("foreign_keys", 1))
            if (value := int(_value(f"PRAGMA {name}"))) < least
        ]
    else:
        unsafe = [
            f"{name} is {value}"
            for name, wanted in (
                ("synchronous_commit", ("on", "remote_write", "remote_apply", "local")),
                ("fsync", ("on",)),
                ("full_page_writes", ("on",)),
                ("session_replication_role", ("origin", "local")),
            )
            if (value := _value(f"SHOW {name}")) not in wanted
        ]
    return [
        Error(
            f"{fact}: a charge that was answered could be lost, or a rule be skipped.",
            hint="Use the settings of docs/operations.md.",
            id="oncereel.E008",
        )
        for fact in unsafe
    ]


def _triggers() -> list[CheckMessage]:
    missing = invariants.missing()
    if not missing:
        return []
    return [
        Error(
            f"{len(missing)} triggers are missing or altered: {', '.join(missing)}.",
            hint="Run manage.py migrate, which installs them, and then manage.py audit.",
            id="oncereel.E009",
        )
    ]


def _ownership() -> list[CheckMessage]:
    if connection.vendor != "postgresql":
        return []
    owns = _value(
        "SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = current_user AND rolsuper) "
        "OR EXISTS (SELECT 1 FROM pg_class WHERE relname = 'billing_transfer' AND relkind = 'r' "
        "AND pg_has_role(current_user, relowner, 'USAGE'))"
    )
    if not owns:
        return []
    return [
        Warning(
            "This role owns the tables or is a superuser, so it could switch the triggers off.",
            hint="Give web and workers a role that may read and write rows and owns nothing.",
            id="oncereel.W004",
        )
    ]


def _value(sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]
