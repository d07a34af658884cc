"""One row of the catalogue, and a message, which is a row with its values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from core.messages import render_sentence, variables_of


@dataclass(frozen=True)
class Row:
    """A sentence of the catalogue.

    `id` names the sentence in docs and tests; `code` is what clients read, and stays. `msgid` is the English
    sentence and the gettext key. `allowed_pairs` are the states of task and money it may be shown for, empty
    where it is not about a live task. `http_status` is that of an answer that is this error. `retry` is the
    button beside it: order the same again, edit first, or none.
    """

    id: str
    code: str
    msgid: str
    plural_msgid: str | None = None
    counted: str | None = None
    allowed_pairs: frozenset[tuple[str, str]] = frozenset()
    http_status: int | None = None
    retry: Literal["again", "edit"] | None = None

    @cached_property
    def variables(self) -> frozenset[str]:
        return variables_of(self.msgid)

    def text(self, params: Mapping[str, Any], language: str | None = None) -> str:
        """The sentence in the given language, or the active one."""
        return render_sentence(
            self.msgid, params, language=language, plural=self.plural_msgid, counted=self.counted
        )


@dataclass(frozen=True, kw_only=True)
class Message:
    """What happened and what happened to the money: a stable code, the row that says it, the row's values."""

    code: str
    row: str
    params: Mapping[str, Any] = field(default_factory=dict)
