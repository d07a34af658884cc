"""Errors as RFC 9457 problem documents: what happened, and what happened to the money."""

from collections.abc import Mapping
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.request import Request

from core import errors
from core.requests import request_id
from videos.messages import Limit, Message, describe_absent, describe_refusal, problem_title, render

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
NAMES_MONEY = frozenset({"price_changed", "insufficient_balance", "not_deletable"})
MONEY_PARAMS = {"price_changed": ("old", "new"), "insufficient_balance": ("price", "balance")}


def problem(
    request: HttpRequest | Request,
    *,
    status: int,
    message: Message,
    code: str | None = None,
    members: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JsonResponse:
    """A problem document. `members` are added as they are (`charge` and `id` of a known task, `field`)."""
    named = code or message.code
    text = render(message)
    document = {
        "type": f"{settings.PUBLIC_BASE_URL}/errors/#{named}",
        "title": problem_title(named),
        "status": status,
        "detail": text,
        "code": named,
        "request_id": request_id(getattr(request, "_request", request)),
        "message": {"code": message.code, "text": text},
        **(members or {}),
    }
    response = JsonResponse(document, status=status, content_type=MEDIA_TYPE)
    response["Cache-Control"] = "no-store"
    for name, value in (headers or {}).items():
        response[name] = value
    return response


def describe_error(error: errors.DomainError) -> tuple[Message, dict[str, Any]]:
    """The sentence of a domain error, and the members that name the field at fault."""
    params = dict(error.params)
    members = {"field": params["field"]} if "field" in params else {}
    if isinstance(params.get("limit"), errors.Allowed):
        params["limit"] = Limit(params["limit"].kind, params["limit"].values)
    if error.code == "model_unavailable":
        members["field"] = "model"
    if error.code in ("not_received", "abandoned"):
        return describe_absent(error.code), members
    currency = {"currency": settings.BILLING_CURRENCY} if error.code in NAMES_MONEY else {}
    return describe_refusal(error.code, **currency, **params), members


def exception_handler(error: Exception, context: Mapping[str, Any]) -> JsonResponse | None:
    """DRF's door: every refusal of the API leaves through `problem`."""
    request: Request = context["request"]
    if isinstance(error, errors.DomainError):
        message, members = describe_error(error)
        retry = {"Retry-After": "2"} if error.status == 503 else {}
        return problem(request, status=error.status, message=message, members=members, headers=retry)
    if isinstance(error, exceptions.Throttled):
        seconds = int(getattr(error, "wait", None) or 1)
        message = describe_refusal("rate_limited", seconds=seconds)
        return problem(request, status=429, message=message, headers={"Retry-After": str(seconds)})
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        headers = {"WWW-Authenticate": getattr(error, "auth_header", "Token")}
        return problem(request, status=401, message=describe_refusal("not_authenticated"), headers=headers)
    if isinstance(error, exceptions.ParseError | exceptions.ValidationError):
        message = describe_refusal("invalid", field="request", limit="not_json")
        return problem(request, status=400, message=message, members={"field": "request"})
    for kind, (code, status) in _PROTOCOL.items():
        if isinstance(error, kind):
            return problem(request, status=status, message=describe_refusal(code))
    if isinstance(error, OperationalError | InterfaceError):
        log.error("database_unavailable", error=str(error)[:200])
        message = describe_refusal("unavailable")
        return problem(request, status=503, message=message, headers={"Retry-After": "2"})
    return None


_PROTOCOL: dict[type[Exception], tuple[str, int]] = {
    exceptions.UnsupportedMediaType: ("unsupported_media_type", 415),
    exceptions.MethodNotAllowed: ("method_not_allowed", 405),
    exceptions.NotAcceptable: ("not_acceptable", 406),
    exceptions.PermissionDenied: ("permission_denied", 403),
    PermissionDenied: ("permission_denied", 403),
    exceptions.NotFound: ("not_found", 404),
    Http404: ("not_found", 404),
}
