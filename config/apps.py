from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ConfigConfig(AppConfig):
    name = "config"
    default = True

    def ready(self) -> None:
        from config import checks, logs, schema  # noqa: F401  (importing registers checks and schemes)

        logs.follow_celery()


class StaffAdminConfig(AdminConfig):
    default_site = "config.admin_site.StaffSite"
