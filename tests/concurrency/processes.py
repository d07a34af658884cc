"""What another process needs to work on the test's own database, files and provider."""

import os
from urllib.parse import quote

from django.conf import settings
from django.db import connection


def database_url() -> str:
    """The address of the test's own database."""
    given = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{given['NAME']}"
    login = quote(given["USER"]) + (f":{quote(given['PASSWORD'])}" if given["PASSWORD"] else "")
    return f"postgres://{login}@{given['HOST']}:{given['PORT'] or 5432}/{given['NAME']}"


def environment_of_this_test() -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": database_url(),
        "DATA_DIR": str(settings.DATA_DIR),
        "SECRET_KEY": settings.SECRET_KEY,
        "FAL_BASE_URL": settings.FAL_BASE_URL,
        "FAL_API_URL": settings.FAL_API_URL,
        "FAL_JWKS_URL": settings.FAL_JWKS_URL,
        "FAL_KEY": settings.FAL_KEY,
        "RESULT_HOSTS": ",".join(settings.RESULT_HOSTS),
        "BROKER_URL": "",
    }
