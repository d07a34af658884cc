"""The two chips beside every video: how the video is, and how the money is."""

from dataclasses import dataclass

from django.utils.translation import gettext, pgettext

from core.messages import in_language
from core.money import NO_BREAK_SPACE, format_amount
from videos.messages.task import TaskFacts


@dataclass(frozen=True)
class Chip:
    """`tone` names a colour pair, `shape` an icon, `word` is always visible beside it.

    `is_solid` fills the chip: a person is working on it. `progress` (0–100) fills the arc of `ring-arc`.
    """

    tone: str  # neutral | progress | attention | success | failure
    shape: str
    word: str
    is_solid: bool = False
    progress: int | None = None


def video_chip(facts: TaskFacts, language: str | None = None) -> Chip:
    """How the video is. What a person works on comes before what is slow."""
    with in_language(language):
        if facts.state == "completed":
            return Chip("success", "disc-check", pgettext("video chip", "Ready"))
        if facts.state == "failed":
            return Chip("failure", "octagon-cross", pgettext("video chip", "No video"))
        if facts.is_stuck or facts.needs_review:
            return Chip("attention", "triangle", pgettext("video chip", "With our team"), is_solid=True)
        if facts.state == "submitting":
            return Chip("neutral", "dashed-ring", pgettext("video chip", "Waiting"))
        if facts.state == "unknown":
            return Chip("attention", "ring-question", pgettext("video chip", "Checking"))
        if facts.is_late:
            return Chip("attention", "clock", pgettext("video chip", "Slow"))
        if facts.progress is None:
            return Chip("progress", "ring-arc", pgettext("video chip", "Making"))
        word = pgettext("video chip", "Making {progress}").format(
            progress=f"{facts.progress}{NO_BREAK_SPACE}%"
        )
        return Chip("progress", "ring-arc", word, progress=facts.progress)


def absent_chip(kind: str, language: str | None = None) -> Chip:
    """The chip of an id without a live task: `deleted` or `abandoned`."""
    with in_language(language):
        if kind == "abandoned":
            return Chip("neutral", "ring-slash", pgettext("video chip", "Withdrawn"))
        return Chip("neutral", "ring-slash", pgettext("video chip", "Deleted"))


def money_chip(facts: TaskFacts, language: str | None = None) -> Chip:
    """How the money is, from the ledger's figures, without the currency.

    Raises:
        ValueError: a money state that does not exist.
    """
    charged = format_amount(facts.charged_micros)
    returned = format_amount(facts.returned_micros)
    net = format_amount(facts.charged_micros - facts.returned_micros)
    with in_language(language):
        match facts.money:
            case "not_charged":
                return Chip("neutral", "struck-coin", gettext("Not charged"))
            case "charged":
                return Chip("neutral", "padlock", gettext("Held {amount}").format(amount=charged))
            case "settled":
                return Chip("neutral", "receipt", gettext("Charged {amount}").format(amount=charged))
            case "partially_refunded":
                word = gettext("Charged {net} · {refunded} back").format(net=net, refunded=returned)
                return Chip("success", "half-return-arrow", word)
            case "refunded":
                return Chip("success", "return-arrow", gettext("Back {amount}").format(amount=returned))
    raise ValueError(f"no such state of money: {facts.money}")
