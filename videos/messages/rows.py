"""The whole catalogue by row, and how a message becomes a sentence."""

from dataclasses import dataclass

from django.utils.translation import gettext

from core.messages import in_language
from core.money import format_money
from videos.messages.answer_rows import ANSWER_ROWS
from videos.messages.row import Message, Row
from videos.messages.task_rows import TASK_ROWS

ALL_ROWS: tuple[Row, ...] = (*TASK_ROWS, *ANSWER_ROWS)
ROWS: dict[str, Row] = {row.id: row for row in ALL_ROWS}
INCONSISTENT = "Z"

# Codes that a failed task may store. `late_result_given` is derived and `output_withheld_goodwill` follows
# from goodwill, so neither is stored.
ROW_OF_FAILURE: dict[str, str] = {
    row.code: row.id for row in ALL_ROWS if row.id[0] in "CDE" and row.id not in ("D12", "E2")
}
FAILURE_CODES: tuple[str, ...] = tuple(ROW_OF_FAILURE)


@dataclass(frozen=True)
class Quoted:
    """A message inside another sentence, in the same language."""

    message: Message

    def text(self) -> str:
        return render(self.message)


def render(message: Message, language: str | None = None) -> str:
    """The sentence of a message in the given language ("en" or "zh-hans"), or in the active one."""
    return ROWS[message.row].text(message.params, language)


def retry_label(
    message: Message, *, price_micros: int, currency: str, language: str | None = None
) -> str | None:
    """The words of the button that orders anew after a failure, with its price, or None where there is none.

    No button where the same input may be refused and charged again, and none while the task is not final.
    """
    retry = ROWS[message.row].retry
    if retry is None:
        return None
    with in_language(language):
        if retry == "edit":
            return gettext("Edit and try again")
        return gettext("Try again · {price}").format(price=format_money(price_micros, currency))
