"""`flush`, refused outside test databases: it would destroy the memory that makes requests idempotent."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands.flush import Command as DjangoFlush

from core import invariants


class Command(DjangoFlush):
    def handle(self, **options: Any) -> None:
        try:
            with invariants.lifted_for_tests():
                super().handle(**options)
        except PermissionError as refused:
            raise CommandError(f"Nothing was deleted: {refused}.") from refused
