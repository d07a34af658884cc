from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts import queries as accounts
from billing import operations
from core.errors import DomainError
from core.money import InvalidAmount, format_money, parse_amount


class Command(BaseCommand):
    help = "Add money to a user's balance. The same reference again adds nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the user's name")
        parser.add_argument("amount", help="in whole currency, for example 12.50")
        parser.add_argument("--reference", required=True, help="what was paid: an invoice, a transaction")

    def handle(self, *args: Any, **options: Any) -> None:
        user = accounts.user_named(options["name"])
        if user is None:
            raise CommandError(f"name: there is no user {options['name']}; no money was moved.")
        try:
            amount = parse_amount(options["amount"])
            added = operations.top_up(
                owner_id=user.pk,
                amount_micros=amount,
                reference=options["reference"],
                actor="command",
                now=timezone.now(),
            )
        except InvalidAmount as error:
            raise CommandError(f"amount: {error}; no money was moved.") from error
        except DomainError as error:
            raise CommandError(f"{error.code}: {error.params}; no money was moved.") from error
        money = format_money(amount, settings.BILLING_CURRENCY)
        self.stdout.write(
            f"Added {money}." if added else f"This reference had added {money} before; nothing was added."
        )
