"""Filters whose choices are known; Django's own would read them from the whole table."""

from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from videos.catalogue import all_models
from videos.desk_queues import QUEUES, queue_condition
from videos.providers.registry import provider_names
from videos.states import State


class QueueFilter(SimpleListFilter):
    title = "waits for a person"
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(QUEUES.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        name = self.value()
        return queryset.filter(queue_condition(name, timezone.now())) if name in QUEUES else queryset


class _FieldFilter(SimpleListFilter):
    """Equality with one of `choices`."""

    choices_of_field: tuple[str, ...] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(choice, choice) for choice in self.choices_of_field]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        chosen = self.value()
        if chosen not in self.choices_of_field:
            return queryset
        return queryset.filter(**{str(self.parameter_name): chosen})


class StateFilter(_FieldFilter):
    title = "state"
    parameter_name = "state"
    choices_of_field = tuple(state.value for state in State)


class ProviderFilter(_FieldFilter):
    title = "provider"
    parameter_name = "provider"
    choices_of_field = provider_names()


class ModelFilter(_FieldFilter):
    title = "model"
    parameter_name = "model"
    choices_of_field = tuple(spec.model for spec in all_models())
