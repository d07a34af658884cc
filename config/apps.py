from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ConfigConfig(AppConfig):
    name = "config"
    default = True

    def ready(self) -> None:
        # Importing registers checks and schemes, and makes the application that rings any process's bells.
        from config import celery, checks, logs, schema  # noqa: F401

        logs.follow_celery()


class StaffAdminConfig(AdminConfig):
    default_site = "config.admin_site.StaffSite"
