from collections.abc import Sequence
from uuid import UUID

from django.contrib import admin
from django.db.models import Q
from django.utils.safestring import SafeString

from accounts.models import ApiToken, User
from core.admin import ReadOnlyAdmin, amount_column, link_to, register

limit = amount_column("daily_spend_limit_micros", "limit a day")


@register(User)
class UserAdmin(ReadOnlyAdmin):
    """People. The hash of a password is never shown."""

    list_display = ("username", "email", "is_staff", "is_active", "date_joined", "last_login")
    fields = readonly_fields = (
        *("id", "username", "email", "is_staff", "is_superuser", "is_active"),
        *("language", "date_joined", "last_login", "account"),
    )
    empty_value_display = "none"

    @admin.display(description="money")
    def account(self, user: User) -> SafeString | None:
        return link_to("billing_account", user.pk, "account")

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        return Q(pk__in=owners)


@register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Keys of programs. Neither the key, which nobody keeps, nor its hash is shown."""

    list_display = ("name", "user", limit, "created_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    fields = readonly_fields = (*("id", "user", "name", limit, "created_at", "last_used_at", "revoked_at"),)
    empty_value_display = "none"

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        return Q(user_id__in=owners) | Q(pk=key) if key else Q(user_id__in=owners)
