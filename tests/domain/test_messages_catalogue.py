"""What only the browser knows, the catalogue of codes, and values that say themselves."""

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone as django_timezone
from django.utils import translation

import core
from core.errors import DomainError
from core.locale_files import compile_catalogues
from core.messages import Clock, Day, Duration, FieldName, Moment, Size, in_language, variables_of
from videos.messages import (
    ALL_ROWS,
    ROWS,
    browser_messages,
    browser_words,
    describe_absent,
    error_catalogue,
    problem_title,
    render,
)

compile_catalogues(Path(core.__file__).resolve().parent.parent / "locale")

AT = datetime(2026, 11, 30, 15, 5, tzinfo=UTC)
MEBIBYTE = 1_048_576


# --- What only the browser knows ------------------------------------------------------------------

BROWSER_SLUGS = {
    "sending",
    "confirming",
    "resending",
    "body_lost",
    "abandoned",
    "abandon_unconfirmed",
    "read_failed",
    "offline",
    "back_online",
    "signed_out",
    "other_owner",
    "record_gone",
    "deleted_elsewhere",
    "storage_refused",
    "insufficient_before",
    "same_request",
    "try_again_final",
    "try_again_open",
    "older_page",
    "still_running",
    "cancel_not_sent",
    "cancel_running",
    "canvas_changed",
    "saving_failed",
    "new_version",
}


def test_the_browser_gets_every_sentence_in_both_languages_with_the_same_variables() -> None:
    english, chinese = browser_messages("en"), browser_messages("zh-hans")
    assert set(english) == set(chinese) == BROWSER_SLUGS | set(browser_words("en"))
    assert BROWSER_SLUGS.isdisjoint(browser_words("en"))
    for slug in BROWSER_SLUGS:
        assert variables_of(english[slug]) == variables_of(chinese[slug]), slug
        assert re.search(r"[\u4e00-\u9fff]", chinese[slug]), slug
        assert not re.search(r"[0-9]+\.[0-9]", english[slug] + chinese[slug]), slug


def test_the_browser_gets_its_words_in_both_languages_with_the_same_variables() -> None:
    english, chinese = browser_words("en"), browser_words("zh-hans")
    assert english.keys() == chinese.keys()
    for slug, word in english.items():
        assert variables_of(word) == variables_of(chinese[slug]), slug
        assert re.search(r"[\u4e00-\u9fff]", chinese[slug]), slug
        assert not chinese[slug].endswith("。"), slug


def test_the_browser_says_not_charged_only_where_the_server_confirmed_it_or_nothing_was_sent() -> None:
    """A lost answer is no proof: until the server refuses the id for ever, only "not twice" is true."""
    english = browser_messages("en")
    final = {slug for slug, text in english.items() if "nothing was charged," in text}
    assert final == {"abandoned"}
    for slug in ("confirming", "resending", "abandon_unconfirmed", "read_failed"):
        assert "you will not be charged twice" in browser_messages("en")[slug]
        assert "不会重复扣费" in browser_messages("zh-hans")[slug]


def test_only_a_conditional_sentence_of_the_browser_speaks_of_money_coming_back() -> None:
    for language, pattern in (("en", r"refund|return|comes back|back in your"), ("zh-hans", "退")):
        texts = browser_messages(language)
        found = {slug for slug in BROWSER_SLUGS if re.search(pattern, texts[slug])}
        assert found == {"cancel_not_sent"}


# --- The catalogue of codes -----------------------------------------------------------------------


def test_every_code_has_a_title_in_both_languages() -> None:
    for code in {row.code for row in ALL_ROWS if row.id[0] not in "AB"}:
        assert problem_title(code, "en")
        assert re.search(r"[\u4e00-\u9fff]", problem_title(code, "zh-hans")), code


def test_every_error_that_code_can_raise_is_in_the_catalogue_with_its_status() -> None:
    def all_of(error: type[DomainError]) -> set[type[DomainError]]:
        return {error}.union(*(all_of(child) for child in error.__subclasses__()))

    statuses = {(entry.code, entry.http_status) for entry in error_catalogue()}
    for error in all_of(DomainError) - {DomainError}:
        if error.__module__.startswith("core."):
            assert (error.code, error.status) in statuses


def test_every_row_id_is_used_once_and_its_texts_are_one_line() -> None:
    assert len(ROWS) == len(ALL_ROWS) == 70
    for row in ALL_ROWS:
        assert "\n" not in row.msgid
        assert row.msgid.endswith((".", "{task}"))


def test_the_documented_errors_are_those_of_the_contract() -> None:
    by_status: dict[int | None, set[str]] = {}
    for entry in error_catalogue():
        by_status.setdefault(entry.http_status, set()).add(entry.code)
    assert by_status[400] == {"invalid", "model_unavailable", "file_not_found"}
    assert by_status[402] == {"insufficient_balance"}
    assert by_status[404] == {"not_received", "not_found"}
    assert by_status[409] == {
        "price_changed",
        "not_deletable",
        "not_cancellable",
        "file_in_use",
        "limit_reached",
        "quota_exceeded",
        "canvas_changed",
    }
    assert by_status[410] == {"abandoned", "deleted"}
    assert by_status[413] == {"too_large"}
    assert by_status[415] == {"unsupported_media_type"}
    assert by_status[422] == {"id_reused"}
    assert by_status[428] == {"version_required"}
    assert by_status[429] == {"rate_limited"}
    assert by_status[503] == {"unavailable", "outcome_unknown", "quarantine"}


def test_the_documentation_shows_sentences_with_their_variables() -> None:
    entry = next(entry for entry in error_catalogue() if entry.row == "G11")
    assert "{n} running videos use it" in entry.text_en
    assert "{n} 个进行中的视频" in entry.text_zh
    assert (entry.http_status, entry.retryable, entry.money) == (409, False, "unchanged")


def test_codes_whose_request_may_be_sent_again_with_the_same_id_are_these() -> None:
    retryable = {
        entry.code for entry in error_catalogue() if entry.retryable and entry.http_status is not None
    }
    assert retryable == {
        "not_received",
        "rate_limited",
        "unavailable",
        "outcome_unknown",
        "quarantine",
        "internal_error",
    }


# --- Values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "english", "chinese"),
    [
        (Duration(0), "0 s", "0 秒"),
        (Duration(-5), "0 s", "0 秒"),
        (Duration(119), "119 s", "119 秒"),
        (Duration(120), "2 min", "2 分钟"),
        (Duration(179), "2 min", "2 分钟"),
        (Duration(121, rounds_up=True), "3 min", "3 分钟"),
        (Duration(7_200), "2 h", "2 小时"),
        (Duration(86_400), "24 h", "24 小时"),
        (Duration(259_200), "3 days", "3 天"),
        (Size(0), "0 B", "0 B"),
        (Size(1_023), "1,023 B", "1,023 B"),
        (Size(65_536), "64 KB", "64 KB"),
        (Size(1_587, rounds_up=True), "1.6 KB", "1.6 KB"),
        (Size(1_587), "1.5 KB", "1.5 KB"),
        (Size(2 * 1024 * MEBIBYTE), "2 GB", "2 GB"),
        (Clock(AT), "15:05 UTC", "15:05 UTC"),
        (Moment(AT), "30 Nov, 15:05 UTC", "11月30日 15:05 UTC"),
        (Day(AT), "30 Nov 2026", "2026年11月30日"),
        (FieldName("aspect_ratio"), "aspect ratio", "画面比例"),
        (FieldName("aspect_ratio", starts_sentence=True), "Aspect ratio", "画面比例"),
    ],
)
def test_a_value_says_itself_like_this(value: Any, english: str, chinese: str) -> None:
    for language, expected in (("en", english), ("zh-hans", chinese)):
        with in_language(language):
            assert value.text().replace("\u00a0", " ") == expected


@pytest.mark.parametrize(
    ("minutes", "clock", "day"),
    [
        (480, "23:05 UTC+8", "30 Nov 2026"),
        (630, "01:35 UTC+10:30", "1 Dec 2026"),
        (-180, "12:05 UTC-3", "30 Nov 2026"),
    ],
)
def test_times_are_in_the_readers_zone_and_name_it(minutes: int, clock: str, day: str) -> None:
    with django_timezone.override(timezone(timedelta(minutes=minutes))), in_language("en"):
        assert Clock(AT).text().replace("\u00a0", " ") == clock
        assert Day(AT).text() == day


def test_without_a_language_the_active_one_speaks() -> None:
    message = describe_absent("not_received")
    with translation.override("zh-hans"):
        assert render(message) == "服务器尚未收到此请求；目前未扣费。"
    with translation.override("en"):
        assert render(message) == "The server has not received this request; nothing has been charged so far."
