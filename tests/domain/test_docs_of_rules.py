"""`docs/errors.md` is what the catalogue says, and `docs/invariants.md` names every rule and nothing else."""

import re
from pathlib import Path
from typing import Any

from django.core.management import call_command

from core import audit
from tests.invariants.test_rules import declared_constraints, every_guard
from videos.management.commands import audit as audit_command
from videos.management.commands.write_error_docs import MONEY, error_page
from videos.messages import error_catalogue

ROOT = Path(__file__).resolve().parents[2]
INVARIANTS = (ROOT / "docs/invariants.md").read_text()
NAMED = set(re.findall(r"`([a-z0-9_]+)`", INVARIANTS))
OURS = ("tombstones_", "accounts_", "billing_", "files_", "videos_")


def test_the_page_of_errors_is_current() -> None:
    assert (ROOT / "docs/errors.md").read_text() == error_page(), "run manage.py write_error_docs"


def test_every_code_has_one_section_with_both_languages() -> None:
    page = error_page()
    for doc in error_catalogue():
        assert page.count(f"## {doc.code}\n") == 1
        assert f"- {doc.text_en}\n" in page
        assert f"- {doc.text_zh}\n" in page
    assert {doc.money for doc in error_catalogue()} <= set(MONEY)


def test_writing_the_page_of_errors_writes_that_page(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    (tmp_path / "docs").mkdir()
    call_command("write_error_docs")
    assert (tmp_path / "docs/errors.md").read_text() == error_page()


def test_every_constraint_and_guard_is_in_the_page_of_invariants_and_no_other() -> None:
    rules = declared_constraints() | every_guard()
    assert len(rules) > 90
    assert {name for name in NAMED if name.startswith(OURS)} == rules


def test_every_rule_of_the_audit_is_in_the_page_of_invariants_and_no_other() -> None:
    said = {rule.says for rule in audit.declared_rules()} | {audit.TRIGGERS, audit_command.MISSING}
    assert set(re.findall(r"^- (.+)$", INVARIANTS, flags=re.MULTILINE)) == said


def test_the_files_that_the_page_of_invariants_names_exist() -> None:
    files = set(re.findall(r"`([\w/]+\.py)`", INVARIANTS))
    assert len(files) > 30
    assert {file for file in files if not (ROOT / file).exists()} == set()
