"""The documentation is true where a program can tell: links, variables, commands, schedule, alarms."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.core.management import get_commands

from config.celery import app
from tests.architecture.sources import ROOT, python_files, tree

PAGES = tuple(
    sorted(
        page.relative_to(ROOT).as_posix()
        for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md"))
    )
)
OPERATIONS = ROOT / "docs" / "operations.md"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
# Of Python, Django and terminals, not ours.
FOREIGN = {"PATH", "PYTHONUNBUFFERED", "NO_COLOR", "DJANGO_SETTINGS_MODULE"}


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that headings get: lower case, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text()), flags=re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    broken = []
    for match in LINK.finditer(without_code(page.read_text())):
        target = unquote(match[1] or match[2])
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


def test_the_pages_of_the_documentation_were_found() -> None:
    assert {"README.md", "README.zh-hans.md", "docs/architecture.md", "docs/operations.md"} <= set(PAGES)


def rows(section: str) -> list[list[str]]:
    """The cells of the tables below a heading of docs/operations.md."""
    text = OPERATIONS.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line] for line in lines[1:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def documented_variables() -> dict[str, str]:
    """Variable → the text of its default."""
    found: dict[str, str] = {}
    for variable, default, *_ in rows("Environment"):
        defaults = default.split(", ") if len(names(variable)) > 1 else [default]
        found.update(zip(names(variable), defaults, strict=True))
    return found


def reads(module: ast.Module) -> Iterator[tuple[str, ast.Call | ast.Subscript]]:
    """Every variable that a module of `config` reads from its environment, and where."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            whose, first = ast.unparse(node.func.value), node.args[0]
        elif isinstance(node, ast.Subscript):
            whose, first = ast.unparse(node.value), node.slice
        else:
            continue
        is_environment = whose.split(".")[-1] in ("env", "environ", "environment", "given")
        if is_environment and isinstance(first, ast.Constant) and VARIABLE.fullmatch(str(first.value)):
            yield str(first.value), node


def used_variables() -> set[str]:
    of_python = {
        variable
        for file in python_files()
        if file.relative_to(ROOT).parts[0] != "simulator"  # which has a README of its own
        for variable, _ in reads(tree(file))
    }
    of_procfile = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "Procfile").read_text()))
    return (of_python | of_procfile) - FOREIGN


def test_every_variable_is_documented_and_every_documented_one_is_read() -> None:
    assert set(documented_variables()) == used_variables()


def test_documented_defaults_are_those_of_the_settings() -> None:
    documented, compared = documented_variables(), 0
    for variable, call in reads(tree(ROOT / "config" / "settings.py")):
        given = [word.value for word in getattr(call, "keywords", []) if word.arg == "default"]
        if (
            not given
            or not isinstance(given[0], ast.Constant)
            or variable in ("SECRET_KEY", "CACHE_URL", "BROKER_URL")
        ):
            continue  # computed, or told in words
        value = given[0].value
        shown = (
            str(value).lower()
            if isinstance(value, bool)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
        )
        assert documented[variable].strip("`") == shown, variable
        compared += 1
    assert compared > 20


def test_every_command_that_is_named_exists() -> None:
    known, missing = set(get_commands()), []
    for page in PAGES:
        text = (ROOT / page).read_text()
        missing += [
            f"{page}: {name}" for name in re.findall(r"manage\.py ([a-z_]+)", text) if name not in known
        ]
    missing += [name for cells in rows("Commands") for name in names(cells[0]) if name not in known]
    assert not missing


def test_every_command_of_ours_is_documented() -> None:
    ours = {file.stem for file in ROOT.glob("*/management/commands/*.py") if not file.stem.startswith("_")}
    assert ours - {name for cells in rows("Commands") for name in names(cells[0])} == set()


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {
        name
        for page in PAGES
        for name in re.findall(r"(?:`|^    )make ([a-z-]+)", (ROOT / page).read_text(), re.M)
    }
    assert named <= targets
    assert {"run", "test"} <= named


def test_the_schedule_is_the_documented_one() -> None:
    documented = {(names(cells[1])[0], cells[2]) for cells in rows("Schedule")}
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    router = app.amqp.router
    assert documented == {(task, router.route({}, task)["queue"].name) for task in scheduled}


def test_every_alarm_is_documented_and_every_documented_one_is_raised() -> None:
    raised: dict[str, set[str]] = {"error": set(), "warning": set()}
    for file in python_files():
        for node in ast.walk(tree(file)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            first = node.args[0]
            if ast.unparse(node.func.value) == "log" and isinstance(first, ast.Constant):
                raised.setdefault(node.func.attr, set()).add(str(first.value))
    assert {names(cells[0])[0] for cells in rows("Alarms")} == raised["error"]
    text = OPERATIONS.read_text().split("Worth a look when they are many:")[1].split("\n\n")[0]
    assert set(names(text)) <= raised["warning"]


def test_decision_records_are_short_and_numbered_without_a_gap() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [record.name[:5] for record in records] == [f"{n:04}-" for n in range(1, len(records) + 1)]
    for record in records:
        lines = record.read_text().splitlines()
        assert lines[0].startswith(f"# {record.name[:4]} "), record.name
        assert len(lines) <= 25, record.name


def test_code_that_a_page_names_exists() -> None:
    missing = [
        f"{page}: {name}"
        for page in PAGES
        for name in re.findall(
            r"`([a-z_]+/[A-Za-z0-9_./-]*\.(?:py|md|svg|png|txt|in|po|js|css))`", (ROOT / page).read_text()
        )
        if not (ROOT / name).exists() and not name.startswith("videos/providers/NAME")
    ]
    assert not missing
