"""The container files name only what exists. They are not built here: that needs a container engine."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from config.procfile import command_of
from config.runner import CannotRun, read_procfile
from tests.architecture.sources import ROOT
from tests.architecture.test_docs import documented_variables
from tests.cases.evidence import wait_for
from tests.simulator_process import SimulatorProcess

COMPOSE_TEXT = (ROOT / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "oncereel"}
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_services_are_the_processes_and_what_they_need():
    assert set(SERVICES) - set(OURS) == {"postgres", "redis"}
    assert set(OURS) == {"prepare", "web", "worker", "downloads", "beat"}


def test_every_process_is_a_line_of_procfile():
    lines = read_procfile((ROOT / "Procfile").read_text())
    started = {name: service["command"] for name, service in OURS.items() if name != "prepare"}
    assert all(len(command) == 1 and command[0] in lines for command in started.values()), started
    assert {command[0] for command in started.values()} == set(lines) - {"simulator"}
    assert re.search(r'^CMD \["(\w+)"\]$', DOCKERFILE, re.MULTILINE)[1] in lines


def test_the_preparation_runs_commands_that_exist_and_everything_waits_for_it():
    (script,) = OURS["prepare"]["command"]
    commands = [line.split()[:3] for line in script.splitlines()]
    assert [words[:2] for words in commands] == [["python", "manage.py"]] * len(commands)
    assert {words[2] for words in commands} <= set(get_commands())
    assert commands[0][2] == "migrate"
    for name in set(OURS) - {"prepare"}:
        assert OURS[name]["depends_on"] == {"prepare": {"condition": "service_completed_successfully"}}


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_variable_of_a_process_is_documented(name: str):
    assert set(OURS[name]["environment"]) <= set(documented_variables())


def test_every_variable_that_the_operator_sets_is_documented():
    asked_for = set(re.findall(r"\$\{(\w+)", COMPOSE_TEXT))
    assert asked_for - set(documented_variables()) == {"POSTGRES_PASSWORD"}
    assert "`POSTGRES_PASSWORD`" in (ROOT / "docs" / "operations.md").read_text()


def test_the_workers_together_serve_every_queue_and_each_once():
    served = ",".join(OURS[name]["environment"]["WORKER_QUEUES"] for name in ("worker", "downloads"))
    default = re.search(r"WORKER_QUEUES:-([\w,]+)", (ROOT / "Procfile").read_text())
    assert default is not None
    assert sorted(served.split(",")) == sorted(default[1].split(","))


def test_no_secret_is_written_down_and_no_registry_is_named():
    for text in (COMPOSE_TEXT, DOCKERFILE):
        images = re.findall(r"^(?:FROM|\s+image:) (\S+)$", text, re.MULTILINE)
        assert images and not [image for image in images if "/" in image]
    assert "PASSWORD: ${" in COMPOSE_TEXT and "FAL_KEY: ${" in COMPOSE_TEXT


def test_the_image_runs_as_nobody_special_with_hashed_requirements_and_without_our_data():
    lines = DOCKERFILE.splitlines()
    assert "USER oncereel" in lines and "--require-hashes" in DOCKERFILE
    ignored = set((ROOT / ".dockerignore").read_text().split())
    assert {".git", ".venv", "var"} <= ignored


def test_a_process_that_procfile_does_not_have_is_refused_by_name():
    with pytest.raises(CannotRun, match="no process 'webb'; it has web, worker, beat, simulator"):
        command_of("webb")


def test_a_process_takes_the_place_of_the_one_that_started_it_and_gets_its_signals(tmp_path: Path):
    simulator = SimulatorProcess(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "config.procfile", "simulator"],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "SIMULATOR_PORT": str(simulator.port),
            "DATA_DIR": str(tmp_path),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        try:
            return simulator.request("GET", "/_sim/healthz", timeout=2).status == 200
        except OSError:
            return False

    try:
        wait_for(answers, seconds=20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) in (0, -signal.SIGTERM)
        assert not answers()
    finally:
        process.kill()
        process.wait()
