"""Ids without a live task, and refusals: what happened, and what happened to the money."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import core
from core.locale_files import compile_catalogues
from core.messages import in_language
from videos.messages import (
    ALL_ROWS,
    Limit,
    Message,
    TaskFacts,
    absent_chip,
    describe_absent,
    describe_refusal,
    describe_task,
    render,
)
from videos.messages.refusals import LIMITS

compile_catalogues(Path(core.__file__).resolve().parent.parent / "locale")

AT = datetime(2026, 11, 30, 15, 5, tzinfo=UTC)
MEBIBYTE = 1_048_576
HELD = TaskFacts(
    state="processing",
    money="charged",
    charged_micros=400_000,
    returned_micros=0,
    goodwill_micros=0,
    currency="USDC",
    model="Seedance",
)


def both(message: Message) -> tuple[str, str]:
    return render(message, "en").replace("\u00a0", " "), render(message, "zh-hans").replace("\u00a0", " ")


# --- Absent ids -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "facts", "row", "code", "english", "chinese"),
    [
        (
            "not_received",
            {},
            "F1",
            "not_received",
            "The server has not received this request; nothing has been charged so far.",
            "服务器尚未收到此请求；目前未扣费。",
        ),
        (
            "abandoned",
            {},
            "F2",
            "abandoned",
            "This request was not accepted and will not be accepted any more; nothing was charged.",
            "此请求未被接收，今后也不再接收；未扣费。",
        ),
        (
            "deleted",
            {"money": "settled", "charged_micros": 400_000},
            "F3",
            "deleted",
            "This video was deleted on 30 Nov 2026; 0.40 USDC had been charged, "
            "and it will not be made or charged again.",
            "此视频已于 2026年11月30日删除；当时已扣费 0.40 USDC，不会再次生成或扣费。",
        ),
        (
            "deleted",
            {"money": "partially_refunded", "charged_micros": 400_000, "returned_micros": 150_000},
            "F3",
            "deleted",
            "This video was deleted on 30 Nov 2026; 0.25 USDC had been charged, "
            "and it will not be made or charged again.",
            "此视频已于 2026年11月30日删除；当时已扣费 0.25 USDC，不会再次生成或扣费。",
        ),
        (
            "deleted",
            {"money": "refunded", "charged_micros": 400_000, "returned_micros": 400_000},
            "F4",
            "deleted",
            "This record was deleted on 30 Nov 2026; 0.40 USDC had been returned to your balance, "
            "and it will not be charged again.",
            "此记录已于 2026年11月30日删除；0.40 USDC 当时已退回余额，不会再次扣费。",
        ),
        (
            "deleted",
            {"money": "not_charged"},
            "F5",
            "deleted",
            "This record was deleted on 30 Nov 2026; nothing had been charged.",
            "此记录已于 2026年11月30日删除；当时未扣费。",
        ),
    ],
)
def test_an_absent_id_is_described_with_its_money(
    kind: str, facts: dict[str, Any], row: str, code: str, english: str, chinese: str
) -> None:
    message = describe_absent(kind, deleted_at=AT if kind == "deleted" else None, currency="USDC", **facts)
    assert (message.row, message.code) == (row, code)
    assert both(message) == (english, chinese)


@pytest.mark.parametrize(
    ("money", "charged", "returned"),
    [
        ("charged", 400_000, 0),
        ("not_charged", 400_000, 0),
        ("refunded", 400_000, 399_999),
        ("refunded", 0, 0),
        ("settled", 400_000, 400_000),
        ("settled", 0, 0),
    ],
)
def test_a_deleted_id_whose_money_cannot_be_rings_the_alarm(money: str, charged: int, returned: int) -> None:
    with capture_logs() as logs:
        message = describe_absent(
            "deleted",
            money=money,
            charged_micros=charged,
            returned_micros=returned,
            currency="USDC",
            deleted_at=AT,
        )
    assert (message.row, message.code) == ("Z", "inconsistent")
    assert [entry["log_level"] for entry in logs] == ["error"]


@pytest.mark.parametrize("kind", ["deleted", "lost"])
def test_an_absent_id_needs_a_known_kind_and_a_deletion_its_time(kind: str) -> None:
    with pytest.raises(ValueError, match=kind):
        describe_absent(kind)


def test_the_chips_of_absent_ids_say_deleted_and_withdrawn() -> None:
    for kind, english, chinese in (("deleted", "Deleted", "已删除"), ("abandoned", "Withdrawn", "已撤回")):
        chip = absent_chip(kind, "en")
        assert (chip.tone, chip.shape, chip.word) == ("neutral", "ring-slash", english)
        assert absent_chip(kind, "zh-hans").word == chinese


# --- Refusals -------------------------------------------------------------------------------------

REFUSALS: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "invalid",
        {"field": "prompt", "limit": Limit("characters", {"n": 4_000})},
        "Prompt is not valid: it may have up to 4,000 characters; this request changed nothing.",
        "提示词不符合要求：最多 4,000 个字符；本次请求没有产生任何变化。",
    ),
    (
        "invalid",
        {"field": "seconds", "limit": Limit("one_of", {"choices": [4, 6, 8]})},
        "Length is not valid: it must be one of 4, 6, 8; this request changed nothing.",
        "时长不符合要求：须为以下之一：4, 6, 8；本次请求没有产生任何变化。",
    ),
    (
        "invalid",
        {"field": "id", "limit": "id_reserved"},
        "Id is not valid: it must not begin with b_; this request changed nothing.",
        "请求 id不符合要求：不能以 b_ 开头；本次请求没有产生任何变化。",
    ),
    (
        "too_large",
        {"size": 20 * MEBIBYTE + 1, "limit": 20 * MEBIBYTE},
        "This is 20.1 MB and the limit is 20 MB; this request changed nothing.",
        "大小为 20.1 MB，上限为 20 MB；本次请求没有产生任何变化。",
    ),
    (
        "id_reused",
        {},
        "This id already belongs to another request, which is unchanged; nothing was charged for this one.",
        "此 id 已属于另一个请求，原请求不受影响；本次未扣费。",
    ),
    (
        "price_changed",
        {"old": 400_000, "new": 500_001, "currency": "USDC"},
        "The price changed from 0.40 USDC to 0.500001 USDC before you submitted; nothing was charged.",
        "提交前价格已由 0.40 USDC 变为 0.500001 USDC；未扣费。",
    ),
    (
        "insufficient_balance",
        {"price": 400_000, "balance": 0, "currency": "USDC"},
        "Not started, because it costs 0.40 USDC and 0.00 USDC is available; nothing was charged.",
        "未开始：需要 0.40 USDC，可用余额为 0.00 USDC；未扣费。",
    ),
    (
        "model_unavailable",
        {"model": "Seedance"},
        "Seedance cannot be ordered at the moment; nothing was charged.",
        "Seedance 暂时无法使用；未扣费。",
    ),
    (
        "rate_limited",
        {"seconds": 3},
        "Too many requests at once, so this attempt was not taken and changed nothing; "
        "it can be sent again in 3 s.",
        "请求过于频繁，本次未被接收，也没有产生任何变化；3 秒后可重新发送。",
    ),
    (
        "unavailable",
        {},
        "The service cannot take requests right now, and this attempt saved nothing; "
        "you will not be charged twice.",
        "服务暂时无法接收请求，本次没有保存任何内容；不会重复扣费。",
    ),
    (
        "outcome_unknown",
        {},
        "The connection broke while saving, so it is not yet known whether your request was kept; "
        "asking again with the same id is safe, and you will not be charged twice.",
        "保存时连接中断，暂不确定请求是否已保存；用同一个 id 再次查询是安全的，不会重复扣费。",
    ),
    (
        "replay",
        {},
        "This request was already submitted; you see that one, and it is not charged again.",
        "此请求已经提交过，显示的是原任务；不会再次扣费。",
    ),
    (
        "not_deletable",
        {"amount": 400_000, "currency": "USDC"},
        "This cannot be deleted while its outcome is open, because it is the proof for your 0.40 USDC; "
        "it can be deleted once it ends.",
        "结果未明确前不能删除，它是 0.40 USDC 费用的凭据；结束后即可删除。",
    ),
    (
        "not_cancellable",
        {"task": describe_task(HELD)},
        "This cannot be cancelled now. Your video is being made; 0.40 USDC is held.",
        "现在无法取消。视频正在生成；已预扣 0.40 USDC。",
    ),
    (
        "file_in_use",
        {"n": 1},
        "This file cannot be deleted yet, because 1 running video uses it; "
        "nothing was deleted and nothing changes in your balance.",
        "此文件正被 1 个进行中的视频使用，暂时不能删除；未删除任何内容，余额不变。",
    ),
    (
        "file_in_use",
        {"n": 2},
        "This file cannot be deleted yet, because 2 running videos use it; "
        "nothing was deleted and nothing changes in your balance.",
        "此文件正被 2 个进行中的视频使用，暂时不能删除；未删除任何内容，余额不变。",
    ),
    (
        "limit_reached",
        {"limit": Limit("running_videos", {"n": 5})},
        "Not started, because it would pass the limit of 5 videos at once; nothing was charged.",
        "未开始：将超过上限（同时 5 个视频）；未扣费。",
    ),
    (
        "limit_reached",
        {"limit": Limit("spend_per_day", {"micros": 5_000_000, "currency": "USDC"})},
        "Not started, because it would pass the limit of 5.00 USDC a day; nothing was charged.",
        "未开始：将超过上限（每日 5.00 USDC）；未扣费。",
    ),
    (
        "quota_exceeded",
        {"used": 5 * 1024 * MEBIBYTE, "quota": 5 * 1024 * MEBIBYTE},
        "Not started, because your cloud space is full (5 GB of 5 GB); nothing was charged.",
        "未开始：云空间已满（5 GB / 5 GB）；未扣费。",
    ),
    (
        "file_not_found",
        {},
        "Not started, because the chosen file no longer exists; nothing was charged.",
        "未开始：所选文件已不存在；未扣费。",
    ),
    (
        "quarantine",
        {},
        "The service is being restored and does not yet know this request; you will not be charged twice.",
        "服务正在恢复，暂时无法确认此请求；不会重复扣费。",
    ),
    (
        "not_authenticated",
        {},
        "Sign in, or send a valid token; this request changed nothing.",
        "请先登录，或提供有效的令牌；本次请求没有产生任何变化。",
    ),
]


@pytest.mark.parametrize(("code", "params", "english", "chinese"), REFUSALS)
def test_a_refusal_says_what_happened_and_what_happened_to_the_money(
    code: str, params: dict[str, Any], english: str, chinese: str
) -> None:
    message = describe_refusal(code, **params)
    assert message.code == code
    assert both(message) == (english, chinese)


def test_every_refusal_of_the_catalogue_is_among_the_examples_or_takes_no_values() -> None:
    shown = {code for code, _, _, _ in REFUSALS}
    for row in ALL_ROWS:
        if row.id[0] in "GP" and row.code not in shown:
            assert row.variables == frozenset()
            assert both(describe_refusal(row.code))[0] == row.msgid


def test_a_refusal_refuses_values_its_sentence_has_no_place_for() -> None:
    with pytest.raises(ValueError, match="amount"):
        describe_refusal("id_reused", amount=1)


def test_a_refusal_with_money_needs_its_currency() -> None:
    with pytest.raises(ValueError, match="currency"):
        describe_refusal("price_changed", old=1, new=2)


def test_a_refusal_lacking_a_value_is_an_error_and_not_a_sentence_with_a_hole() -> None:
    with pytest.raises(KeyError):
        describe_refusal("file_in_use")


def test_a_field_name_made_up_by_a_client_is_shown_cleaned_cut_and_in_quotes() -> None:
    message = describe_refusal("invalid", field="a\x00\u202e" + "b" * 100, limit="no_such_field")
    assert both(message) == (
        f"“a{'b' * 39}” is not valid: there is no such field; this request changed nothing.",
        f"“a{'b' * 39}”不符合要求：没有这个字段；本次请求没有产生任何变化。",
    )


def test_braces_in_a_value_are_text_and_not_a_variable() -> None:
    assert render(describe_refusal("model_unavailable", model="{amount}"), "en") == (
        "{amount} cannot be ordered at the moment; nothing was charged."
    )


def test_every_limit_says_itself_in_both_languages() -> None:
    values = {"n": 2, "low": 1, "high": 9, "choices": ["a", "b"], "micros": 70_000, "currency": "USDC"}
    for kind in LIMITS:
        texts = []
        for language in ("en", "zh-hans"):
            with in_language(language):
                texts.append(Limit(kind, values).text())
        assert "{" not in texts[0] + texts[1]
        assert re.search(r"[\u4e00-\u9fff]", texts[1]), kind
