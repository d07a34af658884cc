"""The door for call-backs."""

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from videos.engine import webhooks
from videos.providers.base import WebhookRefused
from videos.providers.registry import UnknownProvider, get_provider

log = structlog.get_logger(__name__)


@csrf_exempt  # a provider has no session; its signature and the key in the address are checked instead
@require_POST
def receive(request: HttpRequest, provider: str, key: str) -> HttpResponse:
    """2xx for what is stored or known, 404 for a key that is not ours, 401/400/413 for what is not
    believed, 503 for what could not be stored.
    """
    announced = request.META.get("CONTENT_LENGTH") or "0"
    if not announced.isdigit() or int(announced) > webhooks.MAX_CALL_BYTES:
        return _refuse(413, "too_large")
    raw = request.read(webhooks.MAX_CALL_BYTES + 1)
    if len(raw) > webhooks.MAX_CALL_BYTES:
        return _refuse(413, "too_large")
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        webhooks.receive_call(
            provider=get_provider(provider), key=key, headers=headers, raw_body=raw, now=timezone.now()
        )
    except (UnknownProvider, webhooks.UnknownKey):
        return _refuse(404, "not_found")
    except WebhookRefused as refused:
        log.warning("webhook_refused", provider=provider, reason=refused.reason)
        return _refuse(refused.status, refused.reason)
    except (OperationalError, InterfaceError) as error:  # not stored, so the provider has to call again
        log.error("database_unavailable", error=str(error)[:200])
        return _refuse(503, "unavailable")
    return JsonResponse({"received": True})


def _refuse(status: int, reason: str) -> HttpResponse:
    return JsonResponse({"received": False, "reason": reason}, status=status)
