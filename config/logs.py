"""Logging: JSON lines in production, readable lines in development, and no secrets or prompts in either.

Everything goes one way: structlog, the standard library, Django, gunicorn and Celery end in one handler.
Ids of request and task are bound to the context and so on every line.
"""

import logging.config
import os
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog
from celery import signals
from structlog.typing import EventDict, Processor, WrappedLogger

from core.requests import request_id

REMOVED = "[removed]"
# What people wrote, and what opens doors. `request` is Django's whole request object.
NEVER_LOGGED = frozenset(
    {
        *("prompt", "body", "payload", "request_body", "response_body", "fields", "request", "environ"),
        *("authorization", "headers", "cookie", "cookies", "sessionid", "csrftoken"),
        *("password", "secret", "token", "api_key", "key", "fal_key", "secret_key", "digest", "webhook_key"),
    }
)
# Inside texts, such as an exception's: headers with keys, our API tokens, keys in call-back addresses.
_IN_TEXT = (
    (re.compile(r"(?i)(authorization\W{1,4})[^\r\n,}]+"), rf"\1{REMOVED}"),
    (re.compile(r"(?i)\b(key|token|bearer|basic)( +)[\w.~+/=:-]{12,}"), rf"\1\2{REMOVED}"),
    (re.compile(r"\bor_[A-Za-z0-9_-]{43}"), REMOVED),
    (re.compile(r"(/hooks/[^/\s]+/)[0-9a-f]{64}"), rf"\1{REMOVED}"),
    (re.compile(r"(?i)((?:X-Amz-Signature|signature|token|key)=)[^&\s'\"]+"), rf"\1{REMOVED}"),
    (re.compile(r"(://[^/\s:@]+:)[^@\s/]+@"), rf"\1{REMOVED}@"),
)
SECRET_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
SHORTEST_SECRET = 8  # a shorter value of the environment would cut ordinary words out of the lines
DEEPEST = 4  # levels of nested values that are looked into; what lies deeper is not written at all


def configuration(*, debug: bool) -> dict[str, Any]:
    """The `LOGGING` of Django, and structlog set up to match. `LOG_LEVEL` changes our own loggers' level."""
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *_shared(), _for_handler()],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    level = os.environ.get("LOG_LEVEL", "INFO").upper()
    ours = ("core", "tombstones", "accounts", "billing", "files", "videos", "config")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    remove_secrets,
                    _renderer(debug=debug),
                ],
                "foreign_pre_chain": [structlog.stdlib.ExtraAdder(), take_request_id, *_shared()],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            **{name: {"level": level} for name in ours},
            # Each of these brings handlers of its own, which would write a second, other line.
            **{
                name: {"handlers": [], "propagate": True}
                for name in ("django", "django.server", "celery", "gunicorn.access")
            },
            "gunicorn.error": {"handlers": [], "propagate": True, "level": "INFO"},
        },
    }


def remove_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """A processor: values of forbidden names are replaced, and secrets inside texts cut out."""
    return {name: _clean(name, value, DEEPEST) for name, value in event.items()}


def take_request_id(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """A processor: Django logs an answered error after the request's context has ended, with the request."""
    request = event.pop("request", None)
    if hasattr(request, "META"):
        event.setdefault("request_id", request_id(request))
    return event


def follow_celery() -> None:
    """Let Celery log through Django's configuration, and put its task's name on every line of a task."""
    signals.setup_logging.connect(_keep_our_handlers, dispatch_uid="oncereel-logs")
    signals.task_prerun.connect(_bind_task, dispatch_uid="oncereel-logs")
    signals.task_postrun.connect(_unbind_task, dispatch_uid="oncereel-logs")


def _keep_our_handlers(*, loglevel: int | str | None = None, **_: Any) -> None:
    """Celery leaves logging alone when somebody answers this signal; its level is still the operator's."""
    if loglevel is not None:
        logging.getLogger("celery").setLevel(loglevel)


def _bind_task(*, task: Any, task_id: str, **_: Any) -> None:
    structlog.contextvars.bind_contextvars(worker_task=task.name, worker_task_id=task_id)


def _unbind_task(**_: Any) -> None:
    structlog.contextvars.unbind_contextvars("worker_task", "worker_task_id")


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
    ]


def _for_handler() -> Processor:
    return structlog.stdlib.ProcessorFormatter.wrap_for_formatter


def _renderer(*, debug: bool) -> Processor:
    if debug:
        return structlog.dev.ConsoleRenderer(colors=False)
    return structlog.processors.JSONRenderer(ensure_ascii=False, default=str)


def _clean(name: str, value: Any, depth: int) -> Any:
    if name.lower() in NEVER_LOGGED:
        return REMOVED
    if isinstance(value, str):
        return _without_secrets(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth == 0:
        return REMOVED
    if isinstance(value, Mapping | MutableMapping):
        return {str(inner): _clean(str(inner), item, depth - 1) for inner, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean("", item, depth - 1) for item in value]
    return _without_secrets(str(value))


def _without_secrets(text: str) -> str:
    for secret in _secrets():
        text = text.replace(secret, REMOVED)
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def _secrets() -> list[str]:
    """The configured secrets themselves: whatever a library writes, these are cut out of it."""
    from django.conf import settings  # not at the top: the settings import this module

    named = (
        str(value)
        for name, value in (*os.environ.items(), *_secret_settings(settings))
        if SECRET_VARIABLE.search(name)
    )
    return sorted({value for value in named if len(value) >= SHORTEST_SECRET}, key=len, reverse=True)


def _secret_settings(settings: Any) -> list[tuple[str, Any]]:
    if not settings.configured:
        return []
    return [(name, getattr(settings, name, "")) for name in ("SECRET_KEY", "FAL_KEY")]
