"""The staff's site: read-only pages of our own models, and what waits for a person on its front."""

from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from core.admin import ReadOnlyAdmin
from videos import desk_queues

NAMES = {"ApiToken": "API tokens", "ProviderStatus": "Providers", "VideoTask": "Tasks"}


class StaffSite(AdminSite):
    """Registers only pages that cannot write: those of installed packages would edit rows by form."""

    site_header = site_title = "Oncereel staff"
    index_title = "What waits for a person"
    site_url = "/videos/"
    index_template = "admin/front.html"

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        if isinstance(admin_class, type) and issubclass(admin_class, ReadOnlyAdmin):
            super().register(model_or_iterable, admin_class, **options)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        for app in apps:
            for model in app["models"]:
                model["name"] = NAMES.get(model["object_name"], model["name"])
        return apps

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        tiles = desk_queues.tiles(now=timezone.now())
        return super().index(
            request, {**(extra_context or {}), "tiles": tiles, "currency": settings.BILLING_CURRENCY}
        )

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign in where everybody does, so that its limits of failed tries hold here too."""
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or request.get_full_path())
