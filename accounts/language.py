"""The language of a signed-in person: the one they chose, on every device."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation

from accounts.models import User


class AccountLanguageMiddleware:
    """Uses the account's language when one is set; else what LocaleMiddleware found stays."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Asking for the user costs a query, so only a request that carries a session is asked.
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            user = request.user
            if isinstance(user, User) and user.language:
                translation.activate(user.language)
                request.LANGUAGE_CODE = translation.get_language()
        return self.get_response(request)
