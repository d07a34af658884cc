"""Dependencies are pinned with hashes, and the files name no place to get them from."""

import re

import pytest

from tests.architecture.sources import ROOT

COMPILED = ["base.txt", "dev.txt"]


def pinned(name: str) -> set[tuple[str, str]]:
    """Package and version of every line, each of them with at least one hash."""
    text = (ROOT / "requirements" / name).read_text().replace("\\\n", " ")
    pins = set()
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = re.match(r"([a-z0-9][a-z0-9._-]*)(?:\[[a-z0-9,-]+\])?==([^\s;]+)", line)
        assert found, f"not pinned: {line[:80]}"
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), f"no hash: {line[:80]}"
        pins.add((found[1], found[2]))
    return pins


@pytest.mark.parametrize("name", COMPILED)
def test_every_requirement_is_pinned_and_hashed(name: str) -> None:
    assert len(pinned(name)) > 20


def test_the_tests_run_on_the_versions_that_production_runs_on() -> None:
    base, dev = pinned("base.txt"), pinned("dev.txt")
    assert base - dev == set()
    assert len(dev) > len(base)


@pytest.mark.parametrize("name", ["base.in", "dev.in", *COMPILED])
def test_no_requirement_file_names_an_index_or_an_address(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    assert "://" not in text
    found = re.findall(r"^\s*(--?(?:index|extra-index|find-links|trusted-host|i|f)\b.*)$", text, re.MULTILINE)
    assert not found, "\n".join(found)


def test_production_has_what_asynchronous_connections_need() -> None:
    """httpcore2 opens them with anyio, an extra, which the tools for tests bring along and base must name."""
    assert "anyio" in {package for package, _ in pinned("base.txt")}
