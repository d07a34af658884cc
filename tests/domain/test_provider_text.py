"""Texts and words of providers: made harmless, and understood in every spelling."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from videos.providers.text import NOT_JSON, clean_text, parse_json, redact
from videos.providers.words import JobWord, known_word


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("a\x00b", "a b"),
        ("a\x01\x02\x7f\x9fb", "a b"),
        (" a\r\n\tb  c ", "a b c"),
        ("a\ud800b", "ab"),
        ("a\u202eb\u2066c", "abc"),
        ("a\ufffe\uffffb\U0001fffe", "ab"),
        ("苍鹭 🐦", "苍鹭 🐦"),
        (None, ""),
        (7, ""),
        (["x"], ""),
    ],
)
def test_text_is_cleaned(text: object, clean: str) -> None:
    assert clean_text(text, 100) == clean


@settings(max_examples=200, deadline=None, database=None)
@given(text=st.text(alphabet=st.characters(exclude_categories=()), max_size=300), limit=st.integers(0, 200))
def test_any_text_becomes_storable_and_no_longer_than_its_cap(text: str, limit: int) -> None:
    clean = clean_text(text, limit)
    assert len(clean) <= limit
    assert "\x00" not in clean
    assert clean.isprintable() or not clean.isascii()
    clean.encode("utf-8")


def test_secrets_are_removed_the_longest_first_and_short_ones_are_left_alone() -> None:
    assert (
        redact("use id:secret-1 or secret-1", ["secret-1", "id:secret-1"]) == "use [redacted] or [redacted]"
    )
    assert redact("a cat", ["a", "cat", ""]) == "a cat"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{",
        b"NaN",
        b'{"a": Infinity}',
        b"\xff",
        b"[" * 100_000,
        b"1" * 5000,
        b"{} {}",
        b"'a'",
    ],
)
def test_what_is_no_json_is_told_from_null(body: bytes) -> None:
    assert parse_json(body) is NOT_JSON


@pytest.mark.parametrize(
    ("body", "value"), [(b"null", None), (b"[]", []), (b'\xef\xbb\xbf{"a":1}', {"a": 1})]
)
def test_json_is_parsed(body: bytes, value: object) -> None:
    assert parse_json(body) == value


@pytest.mark.parametrize(
    ("spelling", "word"),
    [
        ("succeed", JobWord.SUCCEEDED),
        ("succeeded", JobWord.SUCCEEDED),
        ("SUCCESS", JobWord.SUCCEEDED),
        ("Completed", JobWord.SUCCEEDED),
        (" done ", JobWord.SUCCEEDED),
        ("fail", JobWord.FAILED),
        ("FAILURE", JobWord.FAILED),
        ("error", JobWord.FAILED),
        ("cancelled", JobWord.CANCELLED),
        ("canceled", JobWord.CANCELLED),
        ("expired", JobWord.EXPIRED),
        ("timed out", JobWord.EXPIRED),
        ("rejected", JobWord.REJECTED),
        ("IN_QUEUE", JobWord.WAITING),
        ("in-progress", JobWord.RUNNING),
        ("In Progress\n", JobWord.RUNNING),
    ],
)
def test_every_known_spelling_has_one_meaning_c36(spelling: str, word: JobWord) -> None:
    assert known_word(spelling) is word


@pytest.mark.parametrize(
    "spelling", ["", " ", "pondering", "not completed", "un-done", "x" * 10_000, None, 3, ["done"]]
)
def test_an_unseen_word_has_no_meaning(spelling: object) -> None:
    assert known_word(spelling) is None
