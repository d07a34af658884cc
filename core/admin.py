"""What all admin pages share: they read, in bounded time, and change nothing.

Staff act through operations (see `videos/admin`), never through a form that writes a row.
"""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString

from core.money import format_money

MOST_COUNTED = 5_000  # rows of a list; who needs more searches, and no list reads a whole table
PEOPLE_FOUND = 50  # of one name or address
NOT_REPORTED = "not reported"


class BoundedPaginator(Paginator):
    """Counts no further than `MOST_COUNTED` rows."""

    @cached_property
    def count(self) -> int:
        return len(self.object_list.values_list("pk")[:MOST_COUNTED])  # type: ignore[attr-defined]


class ReadOnlyAdmin(ModelAdmin):
    """Lists and shows rows to staff. Nothing can be added, changed or deleted here.

    Lists are newest first by primary key: ids are made in the order of time, so no other index is needed.
    A subclass says in `matching` what its search finds, by indexed equality alone.
    """

    actions = None
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # each would count the whole table
    paginator = BoundedPaginator
    ordering = ("-pk",)
    sortable_by = ()
    search_fields = ("pk",)  # shows the box; `matching` decides
    empty_value_display = NOT_REPORTED
    view_on_site = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        """What a search for `words` finds; `key` when they are a UUID, `owners` whom they name."""
        return Q(pk=key) if key else Q(pk__in=[])

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        words = search_term.strip()
        if not words:
            return queryset, False
        return queryset.filter(self.matching(words, as_uuid(words), people_named(words))), False


def as_uuid(words: str) -> UUID | None:
    try:
        return UUID(words)
    except ValueError:
        return None


def people_named(words: str) -> list[UUID]:
    """Owners with exactly this name or e-mail address, or this id."""
    named = Q(username=words) | Q(email__iexact=words)
    key = as_uuid(words)
    people = get_user_model().objects.filter(named | Q(pk=key) if key else named)
    found = list(people.values_list("pk", flat=True)[:PEOPLE_FOUND])
    return [*found, key] if key and key not in found else found  # an account may outlive its person


def amount_column(field: str, title: str) -> Any:
    """A column that shows an amount of micro-units for people.

    `Any`, as the stubs of Django allow functions in some of its lists of columns and not in others.
    """

    @admin.display(description=title, empty_value="none")
    def column(row: Any) -> str | None:
        micros = getattr(row, field)
        return None if micros is None else format_money(micros, settings.BILLING_CURRENCY)

    column.__name__ = f"{field}_amount"
    return column


def link_column(view: str, field: str, title: str) -> Any:
    """A column that links to another admin page by an id in this row: `billing_account`, `owner_id`."""

    @admin.display(description=title)
    def column(row: Any) -> SafeString | None:
        return link_to(view, getattr(row, field))

    column.__name__ = f"{field}_link"
    return column


def link_to(view: str, key: Any, text: Any = None) -> SafeString | None:
    if key is None:
        return None
    return format_html('<a href="{}">{}</a>', reverse(f"admin:{view}_change", args=[key]), text or key)


def register(model: type[Model]) -> Callable[[type[ReadOnlyAdmin]], type[ReadOnlyAdmin]]:
    """Like Django's decorator, for pages that only read."""
    return admin.register(model)
