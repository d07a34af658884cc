"""What is shown when a request fails: the request's id, and that nothing is charged by the error.

Programs get a problem document under `/api/`, people a page in both languages.
"""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template import loader

from config.shell import theme_of
from core.requests import request_id
from videos.messages import describe_refusal
from videos.problems import problem


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page(request, "400.html", 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page(request, "403.html", 403)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """No such address, and no such video of this person."""
    if request.path.startswith("/api/"):
        return problem(request, status=404, message=describe_refusal("not_found"))
    return _page(request, "404.html", 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Nobody caught this. Whether an order was kept is not known, so a program is told to ask again."""
    if request.path.startswith("/api/"):
        return problem(request, status=500, message=describe_refusal("internal_error"))
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return unavailable(request)
    return _page(request, "500.html", 500)


def unavailable(request: HttpRequest) -> HttpResponse:
    """The database did not answer, or somebody held a lock for longer than a page waits."""
    response = _page(request, "503.html", 503)
    response["Retry-After"] = "2"
    return response


def too_many_requests(request: HttpRequest) -> HttpResponse:
    """allauth's limits of signing in, signing up and asking for passwords."""
    return _page(request, "429.html", 429)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without a valid proof of origin; it was not taken."""
    return _page(request, "403_csrf.html", 403)


def _page(request: HttpRequest, template: str, status: int) -> HttpResponse:
    # Without context processors: they ask the database, which may be what has failed.
    context = {"request_id": request_id(request), "theme": theme_of(request)}
    response = HttpResponse(loader.render_to_string(template, context), status=status)
    response["Cache-Control"] = "no-store"  # 404 is cacheable by default
    return response
