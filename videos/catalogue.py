"""The models that can be ordered, and how each one's input is written on the wire. Pure: no I/O, no database.

A price that a user pays is not here: billing owns the versioned price rows. `list_prices` are the provider's
own published prices, from which `seed_demo` and the reconciliation report start.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

MAX_PROMPT_CODE_POINTS = 4000

InputKind = Literal["text", "image"]


@dataclass(frozen=True, kw_only=True)
class ListPrice:
    """What the provider asks for one unit, in micro-units of US dollars (1_000_000 = 1 dollar)."""

    resolution: str
    audio: bool
    provider_micros_per_unit: int


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One model of one provider: what may be ordered, and the shape of its input.

    `endpoint` is the provider's own name of the model. `usual_seconds` is the range shown to people before
    our own measurements replace it. `max_job_seconds` is the age after which an unfinished job is stuck.
    `duration_format` and `sends` are the wire: which of our fields the model takes, and how it spells
    seconds. `drill` marks a model that exists for tests and exercises and is not offered to people.
    """

    model: str
    title: str
    provider: str
    endpoint: str
    input: InputKind
    seconds: tuple[int, ...]
    resolutions: tuple[str, ...]
    aspect_ratios: tuple[str, ...]
    audio: bool
    default_seconds: int
    default_resolution: str
    default_aspect_ratio: str
    default_audio: bool
    usual_seconds: tuple[int, int]
    max_job_seconds: int
    charges_on_refusal: bool
    usage_unit: str
    price_unit: Literal["second", "video"]
    accepts_seed: bool
    list_prices: tuple[ListPrice, ...]
    max_prompt: int = MAX_PROMPT_CODE_POINTS
    duration_format: str = "{seconds}s"
    sends: frozenset[str] = frozenset({"aspect_ratio", "resolution", "generate_audio", "seed"})
    drill: bool = False

    def units(self, *, seconds: int) -> int:
        """How many price units a video of this length is: its seconds, or one video."""
        return seconds if self.price_unit == "second" else 1

    def list_price(self, *, resolution: str, audio: bool) -> int | None:
        """The provider's price of one unit in micro-dollars, or None where it publishes none."""
        for price in self.list_prices:
            if price.resolution == resolution and price.audio == audio:
                return price.provider_micros_per_unit
        return None


def get_model(name: str) -> ModelSpec | None:
    """The model of this name, or None. Callers decide what an unknown name means."""
    return _BY_NAME.get(name)


def all_models() -> tuple[ModelSpec, ...]:
    """Every model, drills included, in the order in which they are offered."""
    return _MODELS


def _prices(*rows: tuple[str, bool, int]) -> tuple[ListPrice, ...]:
    return tuple(
        ListPrice(resolution=resolution, audio=audio, provider_micros_per_unit=micros)
        for resolution, audio, micros in rows
    )


# The published prices of veo 3.1 per second of video, 2026: 0.20 silent and 0.40 with sound, at 720p and
# 1080p.
_VEO_PRICES = _prices(
    ("720p", False, 200_000), ("720p", True, 400_000), ("1080p", False, 200_000), ("1080p", True, 400_000)
)
# veo 3.1 fast, 2026: 0.10 silent and 0.15 with sound.
_VEO_FAST_PRICES = _prices(
    ("720p", False, 100_000), ("720p", True, 150_000), ("1080p", False, 100_000), ("1080p", True, 150_000)
)


def _veo(
    *,
    model: str,
    title: str,
    endpoint: str,
    prices: tuple[ListPrice, ...],
    usual_seconds: tuple[int, int],
    provider: str = "fal",
    takes: InputKind = "text",
    drill: bool = False,
) -> ModelSpec:
    return ModelSpec(
        model=model,
        title=title,
        provider=provider,
        endpoint=endpoint,
        input=takes,
        seconds=(4, 6, 8),
        resolutions=("720p", "1080p"),
        aspect_ratios=("16:9", "9:16"),
        audio=True,
        default_seconds=8,
        default_resolution="720p",
        default_aspect_ratio="16:9",
        default_audio=True,
        usual_seconds=usual_seconds,
        max_job_seconds=3600,
        # The provider may bill an input that its rules refused after the model ran, but does not announce it
        # for this model; so a refusal is always returned in full.
        charges_on_refusal=False,
        usage_unit="second",
        price_unit="second",
        accepts_seed=True,
        list_prices=prices,
        drill=drill,
    )


_MODELS: tuple[ModelSpec, ...] = (
    _veo(
        model="veo3.1",
        title="Veo 3.1",
        endpoint="fal-ai/veo3.1",
        prices=_VEO_PRICES,
        usual_seconds=(60, 180),
    ),
    _veo(
        model="veo3.1-fast",
        title="Veo 3.1 Fast",
        endpoint="fal-ai/veo3.1/fast",
        prices=_VEO_FAST_PRICES,
        usual_seconds=(40, 120),
    ),
    ModelSpec(
        model="kling-2.5-turbo",
        title="Kling 2.5 Turbo",
        provider="fal",
        endpoint="fal-ai/kling-video/v2.5-turbo/pro/text-to-video",
        input="text",
        seconds=(5, 10),
        resolutions=("1080p",),
        aspect_ratios=("16:9", "9:16", "1:1"),
        audio=False,
        default_seconds=5,
        default_resolution="1080p",
        default_aspect_ratio="16:9",
        default_audio=False,
        usual_seconds=(60, 240),
        max_job_seconds=3600,
        charges_on_refusal=False,
        usage_unit="second",
        price_unit="second",
        # No field for a seed, so a lost job can be matched by its whole input alone.
        accepts_seed=False,
        list_prices=_prices(("1080p", False, 70_000)),  # 0.35 for 5 seconds, 0.07 for each more
        max_prompt=2500,
        duration_format="{seconds}",
        sends=frozenset({"aspect_ratio"}),
    ),
    _veo(
        model="veo3.1-image",
        title="Veo 3.1 from an image",
        endpoint="fal-ai/veo3.1/image-to-video",
        prices=_VEO_PRICES,
        usual_seconds=(60, 180),
        takes="image",
    ),
    _veo(
        model="veo3.1-blind",
        title="Veo 3.1 (drill)",
        provider="fal_blind",
        endpoint="fal-ai/veo3.1",
        prices=_VEO_PRICES,
        usual_seconds=(60, 180),
        drill=True,
    ),
)

_BY_NAME = MappingProxyType({spec.model: spec for spec in _MODELS})
