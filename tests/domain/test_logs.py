"""What is written to the log, and what never is."""

import io
import json
import logging
import logging.config
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from django.test import Client

from config import logs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lines() -> Iterator[Any]:
    """A handler of the production configuration that writes into memory."""
    written = io.StringIO()
    chosen = logs.configuration(debug=False)["formatters"]["line"]
    formatter = chosen["()"](processors=chosen["processors"], foreign_pre_chain=chosen["foreign_pre_chain"])
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.addHandler(handler)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    root.removeHandler(handler)


def test_a_line_is_json_with_time_level_logger_and_the_ids_of_its_context(lines: Any) -> None:
    with structlog.contextvars.bound_contextvars(request_id="r-1", worker_task="videos.tasks.poll_due"):
        structlog.get_logger("videos.engine.polling").warning(
            "status_not_read", task_id="t-1", tries=3, note="好"
        )
    (line,) = lines()
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "status_not_read",
        "level": "warning",
        "logger": "videos.engine.polling",
        "request_id": "r-1",
        "worker_task": "videos.tasks.poll_due",
        "task_id": "t-1",
        "tries": 3,
        "note": "好",
    }


def test_the_standard_library_and_libraries_write_the_same_lines(lines: Any) -> None:
    logging.getLogger("celery.worker").warning("%s tasks", 3, extra={"queue": "polling"})
    (line,) = lines()
    assert (line["event"], line["logger"], line["queue"]) == ("3 tasks", "celery.worker", "polling")


@pytest.mark.parametrize(
    "name",
    ["prompt", "Authorization", "key", "token", "password", "request", "body", "request_body", "secret"],
)
def test_prompts_and_keys_are_not_written_whatever_the_depth(lines: Any, name: str) -> None:
    structlog.get_logger("videos").warning(
        "event", **{name: "a cat on a roof"}, inner={"a": [{name: "a cat"}]}
    )
    (line,) = lines()
    assert line[name] == "[removed]"
    assert line["inner"] == {"a": [{name: "[removed]"}]}
    assert "cat" not in json.dumps(line)


def test_an_error_that_django_logs_after_the_request_has_its_id_and_not_the_request(lines: Any) -> None:
    answer = Client().get("/there-is-no-such-page", headers={"x-request-id": "given-by-the-proxy"})
    (line,) = [line for line in lines() if line["logger"] == "django.request"]
    assert (answer.status_code, line["request_id"]) == (404, "given-by-the-proxy")
    assert "request" not in line


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Authorization: Key abc:def", "Authorization: [removed]"),
        ("{'Authorization': 'Token or_x'}", "{'Authorization': '[removed]}"),
        ("sent Key 0123456789ab:cdef0123", "sent Key [removed]"),
        (f"token or_{'a' * 43} was used", "token [removed] was used"),
        (f"POST /hooks/fal/{'0f' * 32} 401", "POST /hooks/fal/[removed] 401"),
        ("https://host/v.mp4?X-Amz-Signature=abcdef&x=1", "https://host/v.mp4?X-Amz-Signature=[removed]&x=1"),
        ("postgres://user:pass@db/x", "postgres://user:[removed]@db/x"),
        ("the key of the map", "the key of the map"),
    ],
)
def test_secrets_inside_a_text_are_cut_out(lines: Any, text: str, written: str) -> None:
    logging.getLogger("httpx2").warning(text)
    (line,) = lines()
    assert line["event"] == written


def test_the_configured_keys_are_cut_out_even_of_an_exception(lines: Any, settings: Any) -> None:
    settings.FAL_KEY = "very-own-key:of-this-test"
    try:
        raise ValueError(f"refused: {settings.FAL_KEY}")
    except ValueError:
        logging.getLogger("videos").exception("submit failed")
    (line,) = lines()
    assert "ValueError: refused: [removed]" in line["exception"]
    assert "very-own-key" not in json.dumps(line)


def test_an_object_that_nests_without_end_is_written_only_so_deep(lines: Any) -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    structlog.get_logger("videos").warning("event", endless=endless)
    (line,) = lines()
    assert json.dumps(line).count("again") == logs.DEEPEST


def test_a_task_of_a_worker_is_on_every_line_of_it_and_on_none_after_it(lines: Any) -> None:
    class Task:
        name = "videos.tasks.sweep"

    logs._bind_task(task=Task(), task_id="w-1")
    logging.getLogger("videos").warning("inside")
    logs._unbind_task()
    logging.getLogger("videos").warning("outside")
    inside, outside = lines()
    assert (inside["worker_task"], inside["worker_task_id"]) == ("videos.tasks.sweep", "w-1")
    assert "worker_task" not in outside


@pytest.mark.parametrize(("debug", "first"), [("false", "{"), ("true", "20")])
def test_a_process_writes_json_in_production_and_words_in_development(
    debug: str, first: str, tmp_path: Path
) -> None:
    """A whole process, as settings, Django and the handler meet. Debug lines are left out."""
    script = (
        "import django; django.setup(); import structlog, logging;"
        "structlog.get_logger('videos').info('made', n=1); structlog.get_logger('videos').debug('hidden');"
        "logging.getLogger('urllib3').info('hidden')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DEBUG": debug,
            "DATA_DIR": str(tmp_path),
            "PATH": "",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = ended.stderr.splitlines()
    assert line.startswith(first)
    assert "made" in line
    assert ended.stdout == ""
