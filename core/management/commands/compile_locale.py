"""`compile_locale`: writes the `.mo` files that Django reads translations from."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from core.locale_files import InvalidCatalogue, compile_catalogues


class Command(BaseCommand):
    help = "Compile every .po file that is newer than its .mo file."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        for root in settings.LOCALE_PATHS:
            try:
                written = compile_catalogues(Path(root))
            except InvalidCatalogue as error:
                raise CommandError(str(error)) from error
            for path in written:
                self.stdout.write(f"compiled {path.relative_to(root)}")
