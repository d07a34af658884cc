"""What a job costs: fal's published prices of 2026 by second of video, as exact US dollars. Pure."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

DEFAULT_SECONDS = Decimal(8)  # what the veo models make when no duration is asked for
DEFAULT_UNIT_PRICE = Decimal("0.05")  # of endpoints that are not in the table

# (silent, with sound), the longest matching start of the endpoint wins.
_PER_SECOND = {
    "fal-ai/veo3.1": (Decimal("0.20"), Decimal("0.40")),
    "fal-ai/veo3.1/fast": (Decimal("0.10"), Decimal("0.15")),
}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*s?\s*")


def unit_price(endpoint: str, model_input: Mapping[str, Any]) -> Decimal:
    """Dollars for one second of video."""
    matching = [name for name in _PER_SECOND if endpoint == name or endpoint.startswith(f"{name}/")]
    if not matching:
        return DEFAULT_UNIT_PRICE
    silent, with_sound = _PER_SECOND[max(matching, key=len)]
    return silent if model_input.get("generate_audio") is False else with_sound


def seconds_ordered(model_input: Mapping[str, Any]) -> Decimal:
    """The length asked for: `8`, `"8"` or `"8s"`."""
    match = _DURATION.fullmatch(str(model_input.get("duration", "")))
    return Decimal(match.group(1)) if match else DEFAULT_SECONDS
