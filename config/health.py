"""Whether this process is alive, and whether it can serve."""

from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, JsonResponse


def healthz(request: HttpRequest) -> JsonResponse:
    """Alive: says nothing about anything else."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """Ready: the database answers. The broker is a doorbell, so readiness does not depend on it."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM tombstones_claim WHERE 1 = 0")
    except (DatabaseError, InterfaceError) as error:
        return JsonResponse({"status": "unavailable", "database": type(error).__name__}, status=503)
    return JsonResponse({"status": "ok"})
