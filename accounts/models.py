from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q

from core.constraints import is_integer
from core.ids import new_id


class User(AbstractUser):
    """A person or a program's owner. The id is a UUID that money and claims keep after the account is
    closed.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    language = models.CharField(max_length=16, blank=True, default="")  # empty: as the browser asks

    def __str__(self) -> str:
        return self.username


class ApiToken(models.Model):
    """A key of a program. Only the SHA-256 of its 256-bit secret is kept, so one indexed query finds it.

    A plain hash is enough: the secret has full entropy, so there is nothing to guess.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_tokens")
    name = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)  # SHA-256 in hex
    daily_spend_limit_micros = models.BigIntegerField(null=True, blank=True)  # micro-units a day; empty: none
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)  # to the minute
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["digest"], name="accounts_token_digest_is_unique"),
            models.CheckConstraint(
                condition=(Q(daily_spend_limit_micros__isnull=True) | Q(daily_spend_limit_micros__gte=0))
                & is_integer("daily_spend_limit_micros"),
                name="accounts_token_limit_is_whole_and_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return self.name
