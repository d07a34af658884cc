"""Where the time of one request goes, in the web process. `profile_requests` runs inside the product.

Waiting is measured without the profiler: wall time less CPU time. The profiler, which slows Python's own
calls more than C's, only divides the CPU time among groups; its clock is the thread's CPU time.
"""

import cProfile
import io
import json
import pstats
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from bench.figures import Figure
from bench.machine import Plan

REQUESTS = 500  # of each kind
# The first that fits a file's path, or a C function's name, wins.
GROUPS = (
    ("driver (psycopg)", ("psycopg",)),
    ("statements made once (core/statements.py)", ("core/statements.py",)),
    ("transactions (core/db.py, django.db.transaction)", ("core/db.py", "django/db/transaction.py")),
    ("ORM and database layer of Django", ("django/db/",)),
    ("translation of words", ("django/utils/translation", "gettext.py", "django/utils/functional.py")),
    ("API framework", ("rest_framework",)),
    (
        "middleware",
        (
            *("django/middleware", "django/contrib", "allauth", "csp/", "whitenoise", "core/requests.py"),
            *("config/page_version.py", "accounts/language.py", "django/utils/deprecation.py"),
            *("contextlib.py", "asgiref"),
        ),
    ),
    ("bell and broker", ("core/nudge.py", "celery", "kombu", "redis/", "queue.py", "threading.py", "amqp")),
    ("logging", ("logging/", "structlog")),
    ("messages and presentation", ("videos/messages", "videos/presentation.py", "core/messages.py")),
    ("JSON", ("json/", "core/json_body.py", "encoder")),
    ("rest of Django: handlers, addresses, answers", ("django/",)),
    (
        "our operations and queries",
        ("videos/", "billing/", "tombstones/", "accounts/", "core/", "config/", "files/"),
    ),
)
OTHER = "rest of Python"

Function = tuple[str, int, str]


def tell(plan: Plan) -> list[Figure]:
    """Print where the time of a submission and of a status read goes; these are no figures to compare."""
    with (
        plan.simulator() as simulator,
        plan.installation("time", simulator=simulator) as product,
        product.inside() as inside,
    ):
        made = inside.call("bench.owners:make_completed", count=1)
        for kind in ("submit", "read"):
            arguments = {"kind": kind, "key": made["key"], "client_id": made["ids"][0], "count": REQUESTS}
            print(in_words(kind, inside.call("bench.time_spent:profile_requests", **arguments)), flush=True)
    return []


def profile_requests(*, kind: str, key: str, client_id: str, count: int) -> dict[str, Any]:
    """Milliseconds per request: wall, CPU, waiting, and CPU by group. `kind`: submit or read."""
    request = _submit(key) if kind == "submit" else _read(key, client_id)
    for _ in range(30):
        request()
    cpu, began = time.thread_time(), time.perf_counter()
    for _ in range(count):
        request()
    wall, cpu = time.perf_counter() - began, time.thread_time() - cpu
    profiler = cProfile.Profile(time.thread_time)
    profiler.enable()
    for _ in range(count):
        request()
    profiler.disable()
    shares, functions = _shares(pstats.Stats(profiler))
    return {
        "wall_ms": wall / count * 1000,
        "cpu_ms": cpu / count * 1000,
        "groups": {name: share * cpu / count * 1000 for name, share in shares.items()},
        "functions": [(name, share * cpu / count * 1000) for name, share in functions],
    }


def in_words(kind: str, told: dict[str, Any]) -> str:
    """The same as lines of text, the dearest first."""
    wall, cpu = told["wall_ms"], told["cpu_ms"]
    lines = [
        f"one {kind}: {wall:.2f} ms in one thread; {cpu:.2f} ms of CPU, "
        f"{wall - cpu:.2f} ms waiting (for PostgreSQL, and for the CPU)"
    ]
    groups = sorted(told["groups"].items(), key=lambda item: -item[1])
    lines += [f"  {ms:6.2f} ms  {ms / cpu:4.0%} of CPU  {name}" for name, ms in groups]
    lines += ["  dearest functions, of themselves:"]
    lines += [f"  {ms:6.3f} ms  {name}" for name, ms in told["functions"]]
    return "\n".join(lines)


def _shares(stats: pstats.Stats) -> tuple[dict[str, float], list[tuple[str, float]]]:
    """The share of each group, and of the dearest functions."""
    groups: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        functions[_shown(function)] += own
        if function[0] != "~" or _group(function[2]) is not None:
            groups[_group(function[2] if function[0] == "~" else function[0]) or OTHER] += own
            continue
        # A built-in function is its callers' doing.
        for caller, (_, _, part, _) in callers.items():
            groups[_group(caller[0]) or OTHER] += part
    total = sum(functions.values())
    return (
        {name: own / total for name, own in groups.items()},
        [(name, own / total) for name, own in functions.most_common(10)],
    )


def _group(path: str) -> str | None:
    return next((name for name, parts in GROUPS if any(part in path for part in parts)), None)


def _shown(function: Function) -> str:
    path = function[0].rpartition("site-packages/")[2]
    return function[2] if path == "~" else f"{'/'.join(path.split('/')[-3:])}:{function[1]} {function[2]}"


def _submit(key: str) -> Callable[[], None]:
    def submit() -> None:
        document = {"id": str(uuid4()), "model": "veo3.1", "prompt": "a cat on a roof", "seconds": 8}
        _serve("POST", "/api/videos", key, json.dumps(document).encode(), expected="201")

    return submit


def _read(key: str, client_id: str) -> Callable[[], None]:
    return lambda: _serve("GET", f"/api/videos/{client_id}", key, b"", expected="200")


def _serve(method: str, path: str, key: str, body: bytes, *, expected: str) -> None:
    """One request through the whole WSGI application, as gunicorn calls it."""
    from config.wsgi import application

    statuses: list[str] = []
    environment = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "HTTP_HOST": "127.0.0.1",
        "HTTP_AUTHORIZATION": f"Token {key}",
        "HTTP_ACCEPT": "application/json",
        "HTTP_ACCEPT_LANGUAGE": "en",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http",
    }
    answer = application(environment, lambda status, headers, failure=None: statuses.append(status))
    b"".join(answer)
    if hasattr(answer, "close"):
        answer.close()
    if not statuses[0].startswith(expected):
        raise RuntimeError(f"{method} {path} answered {statuses[0]}")
