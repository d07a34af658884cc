"""Who is asking: an API token of a program, or the session cookie of a page."""

import structlog
from django.db import OperationalError
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts import operations, queries
from accounts.models import ApiToken, User

KEYWORD = "Token"
log = structlog.get_logger(__name__)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Token <key>`; one indexed query on the key's SHA-256."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        keyword, _, key = header.partition(" ")
        if keyword.lower() != KEYWORD.lower():
            return None
        token = queries.token_of_key(key.strip())
        if token is None or not token.user.is_active:
            raise AuthenticationFailed("This token is not valid.", code="token_invalid")
        try:
            operations.note_token_use(token=token)
        except OperationalError as busy:  # a nicety, never worth an answer: the next request notes it
            log.warning("token_use_not_noted", error=str(busy)[:200])
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return KEYWORD


class CookieAuthentication(SessionAuthentication):
    """The session of a page, with its CSRF check; a request without one is answered 401, not 403."""

    def authenticate_header(self, request: Request) -> str:
        return KEYWORD


def owner_of(request: HttpRequest | Request) -> User:
    """The signed-in owner; views are behind a permission that guarantees one."""
    user = request.user
    if not isinstance(user, User):
        raise AuthenticationFailed("Sign in or send a token.", code="not_authenticated")
    return user
