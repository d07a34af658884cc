"""The project's own Python files, parsed once for all architecture tests."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# From the top of the layers to the bottom; the simulator stands apart.
APPS = ("videos", "billing", "files", "accounts", "tombstones", "core")
PACKAGES = ("config", *APPS, "simulator")


@cache
def python_files(*, with_tests: bool = False) -> tuple[Path, ...]:
    """All Python files of the product (and its tests), migrations left out: Django writes those."""
    folders = [ROOT / name for name in (*PACKAGES, *(["tests"] if with_tests else []))]
    files = [file for folder in folders for file in folder.rglob("*.py") if "migrations" not in file.parts]
    assert len(files) > 30, "the files were not found, so nothing would be checked"
    return tuple(sorted(files))


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), filename=str(file))


def shown(file: Path, node: ast.AST | None = None) -> str:
    """`path:line`, for a message a person can click on."""
    path = file.relative_to(ROOT).as_posix()
    return path if node is None else f"{path}:{getattr(node, 'lineno', 0)}"


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def classes(module: ast.Module) -> Iterator[ast.ClassDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node


def imported_names(module: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every imported module or object by its full dotted name."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node, f"{node.module}.{alias.name}"
