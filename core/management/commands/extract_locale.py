"""`extract_locale`: brings the `.po` files up to date with the texts marked in Python files and templates."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.locale_extraction import update_catalogue

LOCALES = ("zh_Hans",)  # English is the language of the msgids


class Command(BaseCommand):
    help = "Collect marked texts into the .po files, keep translations, and list what lacks one."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="fail if a text lacks a translation")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Path(settings.BASE_DIR)
        root = Path(settings.LOCALE_PATHS[0])
        left = [
            (locale, problem)
            for locale in LOCALES
            for problem in update_catalogue(
                project, root / locale / "LC_MESSAGES" / "django.po", locale=locale
            )
        ]
        for locale, problem in left:
            self.stdout.write(f"{locale}: {problem.reason}: {problem.msgid}")
        if left and options["check"]:
            raise CommandError(f"{len(left)} texts lack a translation")
