"""The price list: what each offered option of each model costs today."""

from datetime import datetime
from typing import Any

from django.conf import settings

from billing import operations as billing
from billing.queries import open_prices, quote_at
from core.money import to_amount
from videos.catalogue import all_models, get_model


def prices_by_model() -> dict[str, list[dict[str, Any]]]:
    """Model → its prices by seconds, resolution and sound, in one query. Options without a price are
    absent.
    """
    listed: dict[str, list[dict[str, Any]]] = {}
    for version in open_prices().order_by("model", "resolution", "audio"):
        spec = get_model(version.model)
        if spec is None or version.resolution not in spec.resolutions:
            continue
        listed.setdefault(version.model, []).extend(
            {
                "seconds": seconds,
                "resolution": version.resolution,
                "audio": version.audio,
                "price": to_amount(quote_at(version, seconds=seconds).amount_micros),
            }
            for seconds in spec.seconds
        )
    return listed


def load_list_prices(*, now: datetime) -> int:
    """Open a price version for each list price of the catalogue that has changed; how many were opened."""
    opened = 0
    for spec in all_models():
        for price in spec.list_prices:
            version = billing.set_price(
                model=spec.model,
                resolution=price.resolution,
                audio=price.audio,
                unit=spec.price_unit,
                provider_micros=price.provider_micros_per_unit,
                markup=settings.PRICE_MARKUP,
                now=now,
            )
            opened += version is not None
    return opened
