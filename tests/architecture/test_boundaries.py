"""What import-linter cannot see: pure code is pure whatever it imports, and every package is listed."""

import os
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from tests.architecture.sources import PACKAGES, ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def loaded_with(modules: list[str]) -> set[str]:
    """Everything that is in memory of a new process after it has imported `modules`."""
    script = f"import sys, {', '.join(modules)}; print('\\n'.join(sys.modules))"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"},  # texts are translatable
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return set(ended.stdout.splitlines())


@pytest.mark.parametrize(
    "package", ["videos.states", "videos.messages", "videos.providers", "core.money", "core.ids"]
)
def test_pure_code_can_be_imported_without_the_database_layer(package: str) -> None:
    """Counts what is really loaded, by any way round; so this code can be tested without a database."""
    folder = ROOT / package.replace(".", "/")
    modules = [package, *(f"{package}.{file.stem}" for file in folder.glob("[a-z]*.py"))]
    assert (len(modules) > 5) == folder.is_dir()
    loaded = loaded_with(modules)
    assert set(modules) <= loaded
    assert {name for name in loaded if name == "django.db" or name.endswith(".models")} == set()


def test_the_check_sees_the_database_layer() -> None:
    assert "django.db" in loaded_with(["core.db"])


def test_every_package_is_in_the_layers_the_type_check_and_the_import_order() -> None:
    linter = PROJECT["tool"]["importlinter"]
    layers = next(contract for contract in linter["contracts"] if contract["id"] == "layers")["layers"]
    in_layers = {name.strip() for layer in layers for name in layer.split("|")}
    assert in_layers == set(PACKAGES) - {"simulator"}
    assert set(linter["root_packages"]) == set(PACKAGES)
    assert set(PACKAGES) <= set(PROJECT["tool"]["mypy"]["files"])
    assert set(PROJECT["tool"]["ruff"]["lint"]["isort"]["known-first-party"]) == {*PACKAGES, "tests", "bench"}


def test_every_package_is_forbidden_to_import_the_simulator_and_the_other_way_round() -> None:
    contracts = {contract["id"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
    others = set(PACKAGES) - {"simulator"}
    assert set(contracts["nothing-imports-the-simulator"]["source_modules"]) == others
    assert others < set(contracts["simulator-imports-nothing"]["forbidden_modules"])
