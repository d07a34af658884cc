"""The models on offer are orderable as described, and each belongs to a provider that exists."""

import pytest

from videos.catalogue import ModelSpec, all_models, get_model
from videos.providers.registry import provider_names

MODELS = all_models()


def test_the_models_are_these_and_only_the_drill_is_hidden() -> None:
    assert [(spec.model, spec.provider, spec.input, spec.drill) for spec in MODELS] == [
        ("veo3.1", "fal", "text", False),
        ("veo3.1-fast", "fal", "text", False),
        ("kling-2.5-turbo", "fal", "text", False),
        ("veo3.1-image", "fal", "image", False),
        ("veo3.1-blind", "fal_blind", "text", True),
    ]


def test_a_model_is_found_by_its_name_alone() -> None:
    assert get_model("veo3.1") is MODELS[0]
    assert get_model("VEO3.1") is None
    assert get_model("") is None


@pytest.mark.parametrize("spec", MODELS, ids=lambda spec: spec.model)
def test_every_default_can_be_ordered(spec: ModelSpec) -> None:
    assert spec.default_seconds in spec.seconds
    assert spec.default_resolution in spec.resolutions
    assert spec.default_aspect_ratio in spec.aspect_ratios
    assert spec.audio or not spec.default_audio
    assert spec.provider in provider_names()
    assert 0 < spec.usual_seconds[0] <= spec.usual_seconds[1] < spec.max_job_seconds
    assert 0 < spec.max_prompt <= 4000
    assert spec.accepts_seed is ("seed" in spec.sends)


@pytest.mark.parametrize("spec", MODELS, ids=lambda spec: spec.model)
def test_every_combination_on_offer_has_a_list_price(spec: ModelSpec) -> None:
    for resolution in spec.resolutions:
        for audio in {False, spec.audio}:
            price = spec.list_price(resolution=resolution, audio=audio)
            assert price is not None
            assert price > 0
    assert spec.list_price(resolution="4320p", audio=False) is None


def test_list_prices_are_the_published_ones() -> None:
    prices = {
        (spec.model, row.resolution, row.audio): row.provider_micros_per_unit
        for spec in MODELS
        for row in spec.list_prices
    }
    assert prices["veo3.1", "720p", True] == 400_000
    assert prices["veo3.1", "1080p", False] == 200_000
    assert prices["veo3.1-fast", "720p", True] == 150_000
    assert prices["veo3.1-fast", "1080p", False] == 100_000


def test_units_are_seconds_where_seconds_are_priced() -> None:
    assert MODELS[0].units(seconds=6) == 6
