"""`migrate`, with the triggers taken away before and put back after."""

from typing import Any

from django.core.management.commands.migrate import Command as DjangoMigrate

from core import invariants


class Command(DjangoMigrate):
    def get_check_kwargs(self, options: Any) -> Any:
        """Without the checks of the database: this command is what brings its triggers up to date."""
        return {**super().get_check_kwargs(options), "databases": []}

    def handle(self, *args: Any, **options: Any) -> None:
        inspecting = options.get("plan") or options.get("check_unapplied")
        if inspecting:
            super().handle(*args, **options)
            return
        invariants.remove()
        try:
            super().handle(*args, **options)
        finally:
            if not invariants_need_tables_that_are_missing():
                invariants.install()


def invariants_need_tables_that_are_missing() -> bool:
    """True after migrating back to before the tables existed; there is nothing to guard then."""
    from django.db import connection

    present = set(connection.introspection.table_names())
    return any(guard.table not in present for guard in invariants.declared())
