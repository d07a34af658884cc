"""Adapters, orders and answers for the tests of the providers."""

import json
from typing import Any
from uuid import UUID

from core.http import HttpResponse
from videos.catalogue import ModelSpec, get_model
from videos.providers.base import Order
from videos.providers.fal import FalQueue
from videos.providers.fal_blind import BLIND_CAPABILITIES

KEY = "key-id-123:secret-half-456"
BASE = "https://queue.provider.example"
API = "https://api.provider.example"
TASK = UUID("018f3f6e-0000-7000-8000-000000000001")


def fal(**changes: Any) -> FalQueue:
    """An adapter with made-up addresses."""
    settings: dict[str, Any] = {"base_url": BASE, "api_url": API, "jwks_url": f"{BASE}/jwks", "key": KEY}
    return FalQueue(**{**settings, **changes})


def blind() -> FalQueue:
    return fal(name="fal_blind", capabilities=BLIND_CAPABILITIES)


def model(name: str = "veo3.1") -> ModelSpec:
    spec = get_model(name)
    assert spec is not None
    return spec


def order(name: str = "veo3.1", **changes: Any) -> Order:
    """An order of a heron in eight seconds."""
    values: dict[str, Any] = {
        "task_id": TASK,
        "attempt_number": 1,
        "key": "epoch-key-1",
        "model": model(name),
        "prompt": "a heron at dawn",
        "seconds": 8,
        "resolution": "720p",
        "aspect_ratio": "16:9",
        "audio": True,
    }
    return Order(**{**values, **changes})


def answer(status: int, body: Any = None, **headers: str) -> HttpResponse:
    """An answer: bytes as they are, anything else as JSON; header names with `_` for `-`."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpResponse(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw)


HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
