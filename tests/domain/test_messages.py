"""What a message says about a task and its money is what the task and the ledger say."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import core
from core.locale_files import compile_catalogues
from videos.messages import (
    FAILURE_CODES,
    ROWS,
    TaskFacts,
    describe_task,
    money_chip,
    render,
    retry_label,
    video_chip,
)

compile_catalogues(Path(core.__file__).resolve().parent.parent / "locale")

LANGUAGES = ("en", "zh-hans")
STATES = ("submitting", "unknown", "processing", "completed", "failed")
MONIES = ("not_charged", "charged", "settled", "partially_refunded", "refunded")
AT = datetime(2026, 11, 30, 15, 5, tzinfo=UTC)
NO_FACTS: dict[str, Any] = {}

# The table of legal pairs, as the catalogue's page has it (letters n: the same sentence with a fact unknown).
LEGAL = {
    ("submitting", "charged"): {"A1", "A2", "A2n", "A3", "A4", "A14"},
    ("unknown", "charged"): {"A5", "A6", "A6n", "A14"},
    ("processing", "charged"): {"A7", "A7n", "A8", "A8n", "A9", "A10", "A10n", "A11", "A12", "A13", "A14"},
    ("completed", "settled"): {"B1", "B4"},
    ("completed", "partially_refunded"): {"B2", "B3"},
    ("completed", "refunded"): {"B3"},
    ("failed", "not_charged"): {"C1"},
    ("failed", "settled"): {"E1"},
    ("failed", "partially_refunded"): {"E2"},
    ("failed", "refunded"): {f"D{number}" for number in range(1, 14)} | {"E2"},
}

# Charged, returned in all and returned by support, in micros, for each state of money: each figure its own.
SUMS = {
    "not_charged": (0, 0, 0),
    "charged": (410_000, 0, 0),
    "settled": (420_000, 0, 0),
    "partially_refunded": (430_000, 130_000, 0),
    "refunded": (440_000, 440_000, 0),
}

# What makes a task be described by this row, beside its state and money.
ROW_FACTS: dict[str, dict[str, Any]] = {
    "A1": NO_FACTS,
    "A2": {"wait_reason": "provider_busy", "wait_until": AT},
    "A2n": {"wait_reason": "provider_busy"},
    "A3": {"wait_reason": "provider_paused"},
    "A4": {"wait_reason": "sending_again"},
    "A5": NO_FACTS,
    "A6": {"needs_review": True, "review_deadline": AT},
    "A6n": {"needs_review": True},
    "A7": {"phase": "queued", "queue_position": 3},
    "A7n": {"phase": "queued"},
    "A8": {"phase": "running", "usual_low_seconds": 45, "usual_high_seconds": 170},
    "A8n": {"phase": "running"},
    "A9": {"phase": "storing"},
    "A10": {"is_late": True, "elapsed_seconds": 700, "usual_high_seconds": 170},
    "A10n": {"is_late": True, "elapsed_seconds": 700},
    "A11": {"is_stuck": True, "elapsed_seconds": 9_000},
    "A12": {"is_unreachable": True},
    "A13": {"is_cancelling": True},
    "A14": {"delete_requested": True},
    "B1": NO_FACTS,
    "B2": NO_FACTS,
    "B3": {"goodwill_micros": -1},  # -1: all that was returned
    "B4": {"finished_despite_cancel": True},
    "C1": {
        "error_code": "insufficient_balance",
        "error_params": {"price_micros": 450_000, "balance_micros": 460_001},
    },
    "D2": {"error_code": "input_invalid", "error_params": {"field": "prompt"}},
    "D9": {"error_code": "time_limit", "error_params": {"hours": 24}},
    "D12": {"error_code": "time_limit", "error_params": {"hours": 24}, "late_result_given": True},
    "D13": {"error_code": "not_sent_in_time", "error_params": {"seconds": 7_200}},
    "E1": {"error_code": "output_withheld_charged"},
    "E2": {"error_code": "output_withheld_charged", "goodwill_micros": -1},
}

# Every figure of money that the row may name, in the order of the English sentence.
FIGURES = {
    ("B2", "partially_refunded"): ["0.30", "0.13"],
    ("B3", "partially_refunded"): ["0.43", "0.13"],
    ("B3", "refunded"): ["0.44", "0.44"],
    ("C1", "not_charged"): ["0.45", "0.460001"],
    ("E2", "partially_refunded"): ["0.43", "0.13"],
    ("E2", "refunded"): ["0.44", "0.44"],
}
FIGURE_BY_MONEY = {"charged": ["0.41"], "settled": ["0.42"], "refunded": ["0.44"]}

ALL_CASES = [(row, *pair) for pair, rows in LEGAL.items() for row in sorted(rows)]


def facts_of(row: str, state: str, money: str, **changes: Any) -> TaskFacts:
    charged, returned, goodwill = SUMS[money]
    chosen: dict[str, Any] = {
        "charged_micros": charged,
        "returned_micros": returned,
        "goodwill_micros": goodwill,
        "model": "Seedance",
    }
    chosen |= ROW_FACTS[row] if row in ROW_FACTS else {"error_code": ROWS[row].code}
    if chosen["goodwill_micros"] == -1:
        chosen["goodwill_micros"] = returned
    chosen |= changes
    return TaskFacts(state=state, money=money, currency="USDC", **chosen)


def money_numbers(text: str) -> list[str]:
    """Everything that looks like a sum of money: with the currency, or with decimals."""
    with_currency = re.findall(r"(-?[0-9][0-9,.]*)\u00a0USDC", text)
    with_decimals = re.findall(r"-?[0-9][0-9,]*\.[0-9]+", text)
    assert with_decimals == with_currency, f"a sum without its currency, or the reverse: {text}"
    return with_currency


def test_the_catalogue_allows_exactly_the_legal_pairs() -> None:
    allowed: dict[tuple[str, str], set[str]] = {}
    for row in ROWS.values():
        for pair in row.allowed_pairs:
            allowed.setdefault(pair, set()).add(row.id)
    assert allowed == LEGAL


@pytest.mark.parametrize(("row", "state", "money"), ALL_CASES)
def test_a_task_is_described_by_its_row_and_the_code_is_the_rows(row: str, state: str, money: str) -> None:
    with capture_logs() as logs:
        message = describe_task(facts_of(row, state, money))
    assert (message.row, message.code) == (row, ROWS[row].code)
    assert logs == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("row", "state", "money"), ALL_CASES)
def test_the_text_names_the_ledgers_sums_and_no_other(
    row: str, state: str, money: str, language: str
) -> None:
    text = render(describe_task(facts_of(row, state, money)), language)
    expected = FIGURES.get((row, money)) or FIGURE_BY_MONEY[money]
    assert money_numbers(text) == expected
    assert "{" not in text
    assert "}" not in text


@pytest.mark.parametrize(("row", "state", "money"), ALL_CASES)
def test_the_chinese_text_is_chinese(row: str, state: str, money: str) -> None:
    message = describe_task(facts_of(row, state, money))
    chinese, english = render(message, "zh-hans"), render(message, "en")
    assert re.search(r"[\u4e00-\u9fff]", chinese)
    assert not re.search(r"[\u4e00-\u9fff]", english)
    assert chinese.endswith("。")
    assert "！" not in chinese
    assert "您" not in chinese


@pytest.mark.parametrize(
    ("state", "money"),
    [(state, money) for state in STATES for money in MONIES if (state, money) not in LEGAL],
)
@pytest.mark.parametrize("row", sorted({row for row, _, _ in ALL_CASES}))
def test_an_impossible_pair_is_never_described_as_if_it_were_true(row: str, state: str, money: str) -> None:
    """Whatever else is known of the task: an illegal pair rings the alarm and names no sum."""
    with capture_logs() as logs:
        message = describe_task(facts_of(row, state, money))
    assert (message.row, message.code) == ("Z", "inconsistent")
    assert [(entry["log_level"], entry["event"]) for entry in logs] == [("error", "task_facts_inconsistent")]
    for language in LANGUAGES:
        assert money_numbers(render(message, language)) == []


@pytest.mark.parametrize(
    ("row", "state", "money", "sums"),
    [
        ("A8n", "processing", "charged", {"charged_micros": 0}),
        ("A8n", "processing", "charged", {"returned_micros": 1}),
        ("B1", "completed", "settled", {"returned_micros": 1}),
        ("B2", "completed", "partially_refunded", {"returned_micros": 0}),
        ("B2", "completed", "partially_refunded", {"returned_micros": 430_000}),
        ("B3", "completed", "refunded", {"goodwill_micros": 440_001}),
        ("B3", "completed", "refunded", {"goodwill_micros": 0}),
        ("D1", "failed", "refunded", {"returned_micros": 439_999}),
        ("D1", "failed", "refunded", {"returned_micros": 440_001}),
        ("D1", "failed", "refunded", {"goodwill_micros": 440_000}),
        ("C1", "failed", "not_charged", {"charged_micros": 450_000}),
        ("E2", "failed", "partially_refunded", {"goodwill_micros": 129_999}),
        ("E1", "failed", "settled", {"charged_micros": -420_000}),
    ],
)
def test_sums_that_do_not_add_up_ring_the_alarm(
    row: str, state: str, money: str, sums: dict[str, int]
) -> None:
    with capture_logs() as logs:
        message = describe_task(facts_of(row, state, money, **sums))
    assert message.code == "inconsistent"
    assert [entry["log_level"] for entry in logs] == ["error"]


@pytest.mark.parametrize(
    ("row", "state", "money", "changes", "missing"),
    [
        ("C1", "failed", "not_charged", {"error_params": {"price_micros": 450_000}}, ["balance"]),
        ("D9", "failed", "refunded", {"error_params": {}}, ["duration"]),
        ("D13", "failed", "refunded", {"error_params": {}}, ["duration"]),
        ("A2", "submitting", "charged", {"model": ""}, ["model"]),
    ],
)
def test_a_sentence_that_lacks_a_fact_is_not_said(
    row: str, state: str, money: str, changes: dict[str, Any], missing: list[str]
) -> None:
    with capture_logs() as logs:
        message = describe_task(facts_of(row, state, money, **changes))
    assert message.code == "inconsistent"
    assert [entry["missing"] for entry in logs] == [missing]


@pytest.mark.parametrize("error_code", [None, "", "never_heard_of", "output_withheld_goodwill"])
def test_a_failure_without_a_known_reason_rings_the_alarm(error_code: str | None) -> None:
    with capture_logs() as logs:
        message = describe_task(facts_of("D1", "failed", "refunded", error_code=error_code))
    assert message.code == "inconsistent"
    assert [entry["error_code"] for entry in logs] == [error_code]


def test_the_codes_a_failed_task_may_store_are_these() -> None:
    assert set(FAILURE_CODES) == {
        "insufficient_balance",
        "provider_failed",
        "input_invalid",
        "prompt_refused",
        "image_refused",
        "output_withheld",
        "no_result",
        "result_lost",
        "never_received",
        "time_limit",
        "cancelled",
        "closed_by_support",
        "not_sent_in_time",
        "output_withheld_charged",
    }
    assert len(FAILURE_CODES) == 14


@pytest.mark.parametrize(
    ("facts", "row"),
    [
        ({"delete_requested": True, "phase": "storing", "is_cancelling": True, "is_stuck": True}, "A14"),
        ({"phase": "storing", "is_cancelling": True, "is_stuck": True, "is_unreachable": True}, "A9"),
        ({"is_cancelling": True, "is_stuck": True, "is_late": True}, "A13"),
        ({"is_stuck": True, "is_unreachable": True, "is_late": True, "elapsed_seconds": 9_000}, "A11"),
        ({"is_unreachable": True, "is_late": True, "phase": "queued"}, "A12"),
        ({"is_late": True, "phase": "queued", "queue_position": 1, "usual_high_seconds": 60}, "A10"),
        ({"phase": "queued", "usual_low_seconds": 1, "usual_high_seconds": 2}, "A7n"),
        ({"phase": "running", "usual_low_seconds": 60, "usual_high_seconds": 60}, "A8n"),
    ],
)
def test_of_several_truths_about_a_running_task_this_one_is_said(facts: dict[str, Any], row: str) -> None:
    assert describe_task(facts_of("A1", "processing", "charged", **facts)).row == row


def test_what_support_returned_is_told_apart_from_what_the_settlement_returned() -> None:
    facts = facts_of("B2", "completed", "partially_refunded", returned_micros=150_000, goodwill_micros=50_000)
    text = render(describe_task(facts), "en")
    assert text == (
        "Your video is ready; 0.33\u00a0USDC was charged, "
        "and support returned 0.05\u00a0USDC to your balance."
    )


def test_a_refusal_for_money_is_remembered_with_its_own_figures() -> None:
    message = describe_task(facts_of("C1", "failed", "not_charged"))
    assert render(message, "en") == (
        "Not started, because it costs 0.45\u00a0USDC and 0.460001\u00a0USDC is available; "
        "nothing was charged."
    )
    assert render(message, "zh-hans") == (
        "未开始：需要 0.45\u00a0USDC，可用余额为 0.460001\u00a0USDC；未扣费。"
    )


def test_a_providers_own_name_of_a_field_is_never_shown() -> None:
    facts = facts_of("D2", "failed", "refunded", error_params={"field": "body.prompt<script>"})
    assert render(describe_task(facts), "en") == (
        "The provider did not accept the input; 0.44\u00a0USDC is back in your balance."
    )


# Sentences that may speak of money coming back: because it came back, or under a condition that they state.
CAME_BACK = {f"D{number}" for number in range(1, 14)} | {"B2", "B3", "E2"}
COMES_BACK_IF = {"A1", "A3", "A6", "A6n", "A8", "A14"}


@pytest.mark.parametrize(("row", "state", "money"), ALL_CASES)
def test_money_coming_back_is_spoken_of_only_where_it_does(row: str, state: str, money: str) -> None:
    message = describe_task(facts_of(row, state, money))
    english = bool(re.search(r"refund|return|\bback\b", render(message, "en"), re.IGNORECASE))
    chinese = "退" in render(message, "zh-hans")
    assert english == chinese == (row in CAME_BACK | COMES_BACK_IF)
    if english and row not in COMES_BACK_IF:
        assert money in ("refunded", "partially_refunded")


INVITATION = re.compile(
    r"(?<!no need to )\b(?:re)?submit again|\btry (?:it )?again|\bsend it again|start anew|generate again"
    r"|(?<!无需)重新提交|重新生成|再次生成|再试|请重试|再提交",
    re.IGNORECASE,
)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("row", "state", "money"), [case for case in ALL_CASES if case[0].startswith("A")])
def test_nobody_is_asked_to_submit_again_while_the_task_is_open(
    row: str, state: str, money: str, language: str
) -> None:
    message = describe_task(facts_of(row, state, money))
    assert not INVITATION.search(render(message, language))
    assert retry_label(message, price_micros=400_000, currency="USDC", language=language) is None


def test_the_search_for_invitations_finds_some() -> None:
    assert INVITATION.search("It failed, please try again.")
    assert INVITATION.search("请重新提交。")
    assert not INVITATION.search("there is no need to submit again")
    assert not INVITATION.search("无需重新提交")


@pytest.mark.parametrize(
    ("row", "english", "chinese"),
    [
        (row, "Try again · 0.50\u00a0USDC", "再次生成 · 0.50\u00a0USDC")
        for row in ("D1", "D6", "D7", "D8", "D9")
    ]
    + [(row, "Edit and try again", "修改后再生成") for row in ("D2", "D3", "D4")]
    + [(row, None, None) for row in ("D5", "D10", "D11", "D12", "D13")],
)
def test_a_failure_offers_this_button(row: str, english: str | None, chinese: str | None) -> None:
    message = describe_task(facts_of(row, "failed", "refunded"))
    assert retry_label(message, price_micros=500_000, currency="USDC", language="en") == english
    assert retry_label(message, price_micros=500_000, currency="USDC", language="zh-hans") == chinese


def test_what_was_charged_for_a_refusal_offers_no_button() -> None:
    message = describe_task(facts_of("E1", "failed", "settled"))
    assert retry_label(message, price_micros=500_000, currency="USDC", language="en") is None


def chips() -> Iterator[tuple[str, str, str, dict[str, Any], tuple[str, str, str, str, bool]]]:
    yield "A1", "submitting", "charged", {}, ("neutral", "dashed-ring", "Waiting", "等待中", False)
    yield "A5", "unknown", "charged", {}, ("attention", "ring-question", "Checking", "确认中", False)
    yield "A6", "unknown", "charged", {}, ("attention", "triangle", "With our team", "人工处理", True)
    yield "A7", "processing", "charged", {}, ("progress", "ring-arc", "Making", "生成中", False)
    yield (
        "A8",
        "processing",
        "charged",
        {"progress": 42},
        ("progress", "ring-arc", "Making 42\u00a0%", "生成中 42\u00a0%", False),
    )
    yield "A10", "processing", "charged", {}, ("attention", "clock", "Slow", "较慢", False)
    yield (
        "A11",
        "processing",
        "charged",
        {"is_late": True},
        ("attention", "triangle", "With our team", "人工处理", True),
    )
    yield "B1", "completed", "settled", {}, ("success", "disc-check", "Ready", "已完成", False)
    yield "D1", "failed", "refunded", {}, ("failure", "octagon-cross", "No video", "未生成", False)


@pytest.mark.parametrize(("row", "state", "money", "changes", "chip"), list(chips()))
def test_the_video_chip_is_this(
    row: str, state: str, money: str, changes: dict[str, Any], chip: tuple[str, str, str, str, bool]
) -> None:
    facts = facts_of(row, state, money, **changes)
    english, chinese = video_chip(facts, "en"), video_chip(facts, "zh-hans")
    assert (english.tone, english.shape, english.word, chinese.word, english.is_solid) == chip
    assert english.progress == changes.get("progress")


@pytest.mark.parametrize(
    ("row", "state", "money", "chip"),
    [
        ("C1", "failed", "not_charged", ("neutral", "struck-coin", "Not charged", "未扣费")),
        ("A1", "submitting", "charged", ("neutral", "padlock", "Held 0.41", "已预扣 0.41")),
        ("B1", "completed", "settled", ("neutral", "receipt", "Charged 0.42", "已扣费 0.42")),
        (
            "B2",
            "completed",
            "partially_refunded",
            ("success", "half-return-arrow", "Charged 0.30 · 0.13 back", "实扣 0.30 · 退回 0.13"),
        ),
        ("D1", "failed", "refunded", ("success", "return-arrow", "Back 0.44", "已退回 0.44")),
    ],
)
def test_the_money_chip_is_this(row: str, state: str, money: str, chip: tuple[str, str, str, str]) -> None:
    facts = facts_of(row, state, money)
    english, chinese = money_chip(facts, "en"), money_chip(facts, "zh-hans")
    assert (english.tone, english.shape, english.word, chinese.word) == chip


def test_a_state_of_money_that_does_not_exist_has_no_chip() -> None:
    facts = replace(facts_of("B1", "completed", "settled"), money="paid")
    with pytest.raises(ValueError, match="paid"):
        money_chip(facts)
    with capture_logs() as logs:
        assert describe_task(facts).code == "inconsistent"
    assert len(logs) == 1
