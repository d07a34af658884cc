"""Changes of people and tokens."""

import secrets
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from accounts.models import ApiToken, User
from accounts.queries import digest_of_key
from core import db

SECRET_BYTES = 32  # 256 bits: nothing to guess, so a plain hash of it is enough
LAST_USE_PRECISION = timedelta(minutes=1)  # writing each use would cost a write per read


@db.transaction
def create_user(*, username: str, password: str | None, is_staff: bool = False, email: str = "") -> User:
    """Add a person; staff may also do everything in admin. Raises IntegrityError when the name is taken."""
    return User.objects.create_user(
        username=username, email=email, password=password, is_staff=is_staff, is_superuser=is_staff
    )


@db.transaction
def create_token(*, user: User, name: str, now: datetime) -> str:
    """Make an API token and return its secret, which is shown this once and kept only as a hash."""
    key = f"or_{secrets.token_urlsafe(SECRET_BYTES)}"
    ApiToken.objects.create(user=user, name=name, digest=digest_of_key(key), created_at=now)
    return key


@db.transaction
def revoke_token(*, user: User, token_id: UUID, now: datetime) -> bool:
    """Refuse a token of this user from now on; False when it is not theirs or was revoked before."""
    return bool(
        ApiToken.objects.filter(pk=token_id, user=user, revoked_at__isnull=True).update(revoked_at=now)
    )


def note_token_use(*, token: ApiToken) -> None:
    """Remember roughly when a token was last used, at the price of at most one write a minute."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at >= LAST_USE_PRECISION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


@db.transaction
def choose_language(*, user: User, language: str) -> None:
    """Remember the language a person chose, on every device."""
    User.objects.filter(pk=user.pk).update(language=language)
