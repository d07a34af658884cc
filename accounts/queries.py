"""Reads of people and tokens."""

import hashlib

from django.db.models import CharField

from accounts.models import ApiToken, User
from core.statements import CompiledQuery, Parameter

# Every request of a program asks for its token.
_TOKEN_OF_DIGEST = CompiledQuery(
    lambda: ApiToken.objects.select_related("user").filter(
        digest=Parameter("digest", CharField()), revoked_at__isnull=True
    )
)


def digest_of_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def token_of_key(key: str) -> ApiToken | None:
    """The token whose secret this is, unless revoked, with its user, in one indexed query.

    Any text may come in a header, so a key that is not ASCII is simply nobody's.
    """
    if not key.isascii() or not key:
        return None
    return _TOKEN_OF_DIGEST.first(digest=digest_of_key(key))


def user_named(username: str) -> User | None:
    return User.objects.filter(username=username).first()


def tokens_of(user: User) -> list[ApiToken]:
    """A person's tokens in use, newest first."""
    return list(ApiToken.objects.filter(user=user, revoked_at__isnull=True).order_by("-created_at"))
