import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import operations, queries


class Command(BaseCommand):
    help = "Add a user. Without --password it is asked for."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--password")
        parser.add_argument("--email", default="")
        parser.add_argument("--staff", action="store_true", help="may use the admin")

    def handle(self, *args: Any, **options: Any) -> None:
        if queries.user_named(options["name"]):
            raise CommandError(f"name: {options['name']} exists already; nothing was changed.")
        password = options["password"] or getpass.getpass("Password: ")
        if not password:
            raise CommandError("--password: an empty password is refused; nothing was changed.")
        operations.create_user(
            username=options["name"], password=password, is_staff=options["staff"], email=options["email"]
        )
        self.stdout.write(f"Created {options['name']}.")
