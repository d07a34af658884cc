import secrets
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from accounts import operations as accounts
from accounts import queries
from billing import operations as billing
from core.money import format_money
from videos.prices import load_list_prices

DEMO_BALANCE_MICROS = 100_000_000


class Command(BaseCommand):
    help = "Demo data: prices, user demo with money and an API token, staff admin. Secrets are printed once."

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        load_list_prices(now=now)
        for name, is_staff in (("demo", False), ("admin", True)):
            if queries.user_named(name) is None:
                password = secrets.token_urlsafe(9)
                accounts.create_user(username=name, password=password, is_staff=is_staff)
                self.stdout.write(f"{name:<6} password  {password}")
                if name == "demo":
                    user = queries.user_named(name)
                    assert user is not None
                    key = accounts.create_token(user=user, name="demo", now=now)
                    self.stdout.write(f"{name:<6} API token {key}")
        demo = queries.user_named("demo")
        if demo is not None and billing.top_up(
            owner_id=demo.pk,
            amount_micros=DEMO_BALANCE_MICROS,
            reference="demo-money",
            actor="seed_demo",
            now=now,
        ):
            self.stdout.write(
                f"demo   balance   {format_money(DEMO_BALANCE_MICROS, settings.BILLING_CURRENCY)}"
            )
