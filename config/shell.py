"""What every page shows around its content."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.models import User
from billing.queries import balance_of
from config.page_version import page_version
from core.requests import request_id

THEMES = ("light", "dark")  # anything else: as the system


def shell(request: HttpRequest) -> dict[str, Any]:
    """The context of the page frame. The admin has a frame of its own and is asked nothing."""
    user = request.user if hasattr(request, "user") else None
    frame = {
        "request_id": request_id(request),
        "theme": theme_of(request),
        "page_version": page_version(),
        "has_mail": bool(settings.EMAIL_URL),
        "nav": [],
        "balance": None,
    }
    if not isinstance(user, User) or request.path.startswith("/admin/"):
        return frame
    balance = balance_of(user.pk)
    return {
        **frame,
        "nav": _entries(request.path),
        "balance": {
            "available_micros": balance.available_micros,
            "held_micros": balance.held_micros,
            "currency": settings.BILLING_CURRENCY,
        },
    }


def theme_of(request: HttpRequest) -> str:
    """The theme this browser chose; "" is as the system."""
    chosen = request.COOKIES.get("oncereel_theme", "")
    return chosen if chosen in THEMES else ""


def _entries(path: str) -> list[dict[str, Any]]:
    places = (
        ("/videos/", _("Videos"), "videos"),
        ("/billing/", _("Billing"), "billing"),
        ("/account/", _("Account"), "account"),
    )
    return [
        {"url": url, "label": label, "icon": icon, "current": path.startswith(url)}
        for url, label, icon in places
    ]
