"""The project's settings plus the migration linter, which only `make lint` needs."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as PRODUCT_APPS

INSTALLED_APPS = [*PRODUCT_APPS, "django_migration_linter"]
MIGRATION_LINTER_OPTIONS = {
    # Other people's migrations are not ours to repair.
    "include_apps": ["core", "tombstones", "accounts", "billing", "files", "videos"],
}
