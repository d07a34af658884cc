import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from core import audit
from files import audit as files

MISSING = "the storage has the bytes of every file"


class Command(BaseCommand):
    help = "Re-derive every balance and check every invariant in one snapshot. Exits 1 on any violation."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--rows-only", action="store_true", help="leave out the storage, whose listing may take long"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        found = audit.findings()
        if not options["rows_only"]:
            lost = [f"key={key}" for key in files.missing_bytes()]
            found.append(audit.Finding(says=MISSING, violations=lost))
        for finding in found:
            count = len(finding.violations)
            self.stdout.write(f"{f'{count} broken' if count else 'ok'}: {finding.says}")
            for violation in finding.violations:
                self.stdout.write(f"  {violation}")
        if not options["rows_only"]:
            for name in files.orphan_bytes():
                self.stdout.write(f"note: no file shows the stored bytes {name}")
        broken = sum(len(finding.violations) for finding in found)
        self.stdout.write(f"{len(found)} invariants, {broken} violations.")
        if broken:
            sys.exit(1)
