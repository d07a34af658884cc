from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from videos.prices import load_list_prices


class Command(BaseCommand):
    help = "Open a price for every model from the provider's list price and PRICE_MARKUP, where it changed."

    def handle(self, *args: Any, **options: Any) -> None:
        opened = load_list_prices(now=timezone.now())
        self.stdout.write(f"{opened} prices opened.")
