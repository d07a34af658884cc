"""The form that orders a video: what it holds, what it costs, and what it sends. Pure but for settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from billing.queries import Balance
from core.ids import new_id
from core.messages import Duration
from core.money import parse_amount
from videos.queries import TaskView

TEXT_FIELDS = ("id", "model", "prompt", "resolution", "aspect_ratio", "image_url", "max_price")
WHOLE_FIELDS = ("seconds", "seed")
FLAGS = {"true": True, "false": False}


def fields_of(values: Mapping[str, str]) -> dict[str, Any]:
    """The API's fields of a submitted form. What is no number stays text, and is refused by name later.

    A browser sends line ends as CR LF and blanks as typed; the prompt goes out as the script sends it.
    """
    fields: dict[str, Any] = {name: values[name] for name in TEXT_FIELDS if values.get(name)}
    if "prompt" in fields:
        fields["prompt"] = fields["prompt"].replace("\r\n", "\n").strip()
    for name in WHOLE_FIELDS:
        text = values.get(name, "").strip()
        if text:
            fields[name] = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else text
    if values.get("audio"):
        fields["audio"] = FLAGS.get(values["audio"], values["audio"])
    return fields


def draft_of(view: TaskView) -> dict[str, Any]:
    """The values of an earlier order, for "use again"; the id is new."""
    task = view.task
    if task is None:
        return {}
    return {
        "model": task.model,
        "prompt": view.prompt,
        "seconds": task.seconds,
        "resolution": task.resolution,
        "aspect_ratio": task.aspect_ratio,
        "audio": "true" if task.audio else "false",
        "seed": "" if task.seed is None else task.seed,
    }


def compose(
    *,
    values: Mapping[str, Any],
    models: Sequence[Mapping[str, Any]],
    balance: Balance,
    errors: Mapping[str, str],
    same_request: str,
) -> dict[str, Any]:
    """The context of the form: completed by the chosen model's defaults, with today's price on its button."""
    model = _chosen(models, values.get("model"))
    shown = _completed(values, model)
    price = _price(model, shown)
    missing = 0 if price is None else max(0, price["micros"] - balance.available_micros)
    shown["max_price"] = price["text"] if price else ""
    return {
        "id": shown["id"],
        "values": shown,
        "errors": errors,
        "notice": "",
        "same_request": same_request,
        "price_micros": price["micros"] if price else None,
        "balance_after_micros": balance.available_micros - price["micros"] if price and not missing else None,
        "missing_micros": missing,
        "currency": settings.BILLING_CURRENCY,
        "model": model,
        "models": models,
        "usual": _usual(model),
    }


def _usual(model: Mapping[str, Any]) -> dict[str, str] | None:
    """How long the model usually takes, in words."""
    usual = model.get("usual_seconds")
    if not usual:
        return None
    high = Duration(usual["high"], rounds_up=True)
    return {"low": Duration(usual["low"]).text(), "high": high.text()}


def _chosen(models: Sequence[Mapping[str, Any]], name: object) -> Mapping[str, Any]:
    named = [model for model in models if model["model"] == name]
    available = [model for model in models if model["available"]]
    return (named or available or list(models) or [{}])[0]


def _completed(values: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """Values that the model does not offer become its defaults, so that a change of model just works."""
    default = model.get("default", {})
    shown = dict(values)
    shown["model"] = model.get("model", "")
    shown.setdefault("id", str(new_id()))
    for name, choices in (
        ("seconds", model.get("seconds", [])),
        ("resolution", model.get("resolutions", [])),
        ("aspect_ratio", model.get("aspect_ratios", [])),
    ):
        if str(shown.get(name)) not in {str(choice) for choice in choices}:
            shown[name] = default.get(name)
    if shown.get("audio") not in FLAGS:
        shown["audio"] = "true" if default.get("audio") else "false"
    return shown


def _price(model: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any] | None:
    for price in model.get("prices", []):
        if (
            str(price["seconds"]) == str(values["seconds"])
            and price["resolution"] == values["resolution"]
            and price["audio"] == FLAGS[values["audio"]]
        ):
            return {"text": price["price"], "micros": parse_amount(price["price"])}
    return None
