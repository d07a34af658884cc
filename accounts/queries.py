"""Reads of people and tokens."""

import hashlib

from accounts.models import ApiToken, User


def digest_of_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def token_of_key(key: str) -> ApiToken | None:
    """The token whose secret this is, unless revoked, with its user, in one indexed query.

    Any text may come in a header, so a key that is not ASCII is simply nobody's.
    """
    if not key.isascii() or not key:
        return None
    return (
        ApiToken.objects.select_related("user")
        .filter(digest=digest_of_key(key), revoked_at__isnull=True)
        .first()
    )


def user_named(username: str) -> User | None:
    return User.objects.filter(username=username).first()


def tokens_of(user: User) -> list[ApiToken]:
    """A person's tokens in use, newest first."""
    return list(ApiToken.objects.filter(user=user, revoked_at__isnull=True).order_by("-created_at"))
