from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts import operations, queries


class Command(BaseCommand):
    help = "Make an API token for a user and print it, alone; it is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the user's name")
        parser.add_argument("--label", default="command line", help="what the token is for")

    def handle(self, *args: Any, **options: Any) -> None:
        user = queries.user_named(options["name"])
        if user is None:
            raise CommandError(f"name: there is no user {options['name']}; nothing was changed.")
        self.stdout.write(operations.create_token(user=user, name=options["label"][:64], now=timezone.now()))
