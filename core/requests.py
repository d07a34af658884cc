"""A request has an id that logs, problem documents and error pages share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from core.ids import new_id

if TYPE_CHECKING:  # the settings import this for the logs, and must not load the database layer
    from django.http import HttpRequest, HttpResponse

_GIVEN = re.compile(r"[A-Za-z0-9_.:-]{8,64}")


class RequestIdMiddleware:
    """Gives each request an id (the caller's `X-Request-Id` when it is a sane one) and answers with it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _GIVEN.fullmatch(given) else new_id().hex
        request.META["oncereel.request_id"] = request_id
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self.get_response(request)
        response["X-Request-Id"] = request_id
        return response


def request_id(request: HttpRequest) -> str:
    return str(request.META.get("oncereel.request_id", ""))
