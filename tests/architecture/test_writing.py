"""Rows are written by operations, in plain sight: no signals, no `save()` that does more, no hidden order."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import (
    APPS,
    ROOT,
    classes,
    functions,
    imported_names,
    python_files,
    shown,
    tree,
)

# In most apps the operations are one module. In `videos` they are one file a verb (dispatch, binding …);
# there the modules are named that translate, read or decide, and so write nothing.
WRITERS = {"operations"}
NO_WRITERS_OF_VIDEOS = {
    "admin",
    "api",
    "apps",
    "audit",
    "catalogue",
    "checks",
    "composer",
    "errors",
    "files_api",
    "forms",
    "hooks",
    "kinds",
    "management",
    "messages",
    "models",
    "pages",
    "presentation",
    "prices",
    "problems",
    "providers",
    "queries",
    "requests",
    "schema",
    "states",
    "tasks",
    "urls",
}

CREATING = {
    "bulk_create",
    "bulk_update",
    "get_or_create",
    "update_or_create",
    "abulk_create",
    "acreate",
    "asave",
}
# These words have other meanings too (a dict is updated, a key of the storage deleted), so they count only on
# what is visibly a manager or a query set.
CHANGING = {"create", "update", "delete", "aupdate", "adelete", "raw"}
QUERY_WORDS = {"objects", "filter", "exclude", "all", "select_for_update", "order_by", "using"}


def may_write(file: Path) -> bool:
    app, *rest = file.relative_to(ROOT).with_suffix("").parts
    first = rest[0] if rest else ""
    if app == "core":
        return rest[:2] == ["management", "commands"] or first in ("db", "invariants")
    if app == "videos":
        return first not in NO_WRITERS_OF_VIDEOS
    return first in WRITERS


def is_query(node: ast.expr) -> bool:
    """Whether an expression is visibly a manager or a query set: `Task.objects`, `….filter(…)`."""
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            if node.attr in QUERY_WORDS:
                return True
            node = node.value
        else:
            return False


def writes(module: ast.Module) -> Iterator[ast.Call]:
    """Calls that write rows. `save` counts on anything: nothing but a model or a form has it here."""
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        if name in CREATING or name == "save" or (name in CHANGING and is_query(node.func.value)):
            yield node


def test_only_operations_write_rows() -> None:
    found = [
        shown(file, call)
        for file in python_files()
        if file.relative_to(ROOT).parts[0] in APPS and not may_write(file)
        for call in writes(tree(file))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "Task.objects.create(a=1)",
        "Task.objects.filter(pk=1).update(a=1)",
        "Task.objects.all().delete()",
        "task.save()",
        "Task.objects.bulk_create([])",
        "Task.objects.using('default').filter(a=1).exclude(b=2).update(a=1)",
    ],
)
def test_the_check_sees_a_write(source: str) -> None:
    assert len(list(writes(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source", ["digest.update(b'')", "storage.delete('key')", "{}.update(a=1)", "Task.objects.get()"]
)
def test_the_check_leaves_other_calls_alone(source: str) -> None:
    assert list(writes(ast.parse(source))) == []


def test_no_model_overrides_save_or_delete() -> None:
    found = [
        shown(file, function)
        for file in python_files()
        if file.stem == "models" or file.parent.name == "models"
        for node in classes(tree(file))
        for function in node.body
        if isinstance(function, ast.FunctionDef)
        and function.name in ("save", "delete", "full_clean", "__init__")
    ]
    assert not found, "\n".join(found)


def test_no_model_has_a_hidden_order() -> None:
    found = [
        shown(file, statement)
        for file in python_files()
        for node in classes(tree(file))
        if node.name == "Meta"
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "ordering" for target in statement.targets)
    ]
    assert not found, "\n".join(found)


def test_there_are_no_signals_and_no_generic_foreign_keys() -> None:
    banned = ("django.db.models.signals", "django.dispatch", "django.contrib.contenttypes.fields")
    found = [
        f"{shown(file, node)} {name}"
        for file in python_files()
        for node, name in imported_names(tree(file))
        if name.startswith(banned)
    ]
    assert not found, "\n".join(found)


def test_no_error_is_swallowed() -> None:
    """`except Exception: pass` and bare `except:` hide the one failure that matters."""
    found = [
        shown(file, node)
        for file in python_files(with_tests=True)
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
        )
        and (node.type is None or all(isinstance(line, ast.Pass | ast.Continue) for line in node.body))
    ]
    assert not found, "\n".join(found)


def test_nothing_is_left_unwritten() -> None:
    found = [
        shown(file, node)
        for file in python_files()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Name) and node.id == "NotImplementedError"
    ]
    assert not found, "\n".join(found)


def test_public_operations_take_keywords_only() -> None:
    """`charge(a, b, c)` can't be read; `charge(owner=…, order=…, now=…)` can, and in any order."""
    found = [
        f"{shown(file, function)} {function.name}"
        for file in python_files()
        if file.stem == "operations" and file.relative_to(ROOT).parts[0] in APPS
        for function in tree(file).body
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_")
        if len(function.args.posonlyargs) + len(function.args.args) > 1  # a single one can't be mistaken
    ]
    assert not found, "\n".join(found)


def test_the_tests_above_look_at_functions_at_all() -> None:
    operations = [file for file in python_files() if file.stem == "operations"]
    assert len(operations) >= 5
    assert all(list(functions(tree(file))) for file in operations)
