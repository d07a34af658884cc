"""Which version of the pages this process serves, so that an open page learns that a newer one is there."""

import hashlib
from collections.abc import Callable
from functools import cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse

HEADER = "X-Oncereel-Version"
DIGITS = 12  # enough to tell two releases apart


@cache
def page_version() -> str:
    """A digest of all templates and static files, taken once a process."""
    digest = hashlib.sha256()
    for folder in ("templates", "static"):
        for path in sorted((settings.BASE_DIR / folder).rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(settings.BASE_DIR).as_posix()}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:DIGITS]


class PageVersionMiddleware:
    """Names the version in every answer of the API; the pages' script compares it with its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith("/api/"):
            response[HEADER] = page_version()
        return response
