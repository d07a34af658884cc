"""The catalogue of codes for people who program against the API: titles, and the data of `docs/errors.md`."""

from dataclasses import dataclass

from django.utils.translation import gettext, gettext_noop, ngettext

from core.messages import in_language, variables_of
from videos.messages.rows import ALL_ROWS, ROWS

# Short names of what happened, for the `title` of a problem. The sentence with the money is the `detail`.
TITLES: dict[str, str] = {
    "insufficient_balance": gettext_noop("Not enough money"),
    "provider_failed": gettext_noop("The provider failed"),
    "input_invalid": gettext_noop("Input not accepted by the provider"),
    "prompt_refused": gettext_noop("Prompt against the content rules"),
    "image_refused": gettext_noop("Image against the content rules"),
    "output_withheld": gettext_noop("Video withheld by the content rules"),
    "no_result": gettext_noop("No video delivered"),
    "result_lost": gettext_noop("Finished video lost"),
    "never_received": gettext_noop("Never received by the provider"),
    "time_limit": gettext_noop("Outcome never known"),
    "cancelled": gettext_noop("Cancelled"),
    "closed_by_support": gettext_noop("Closed by support"),
    "late_result_given": gettext_noop("Late video given for free"),
    "not_sent_in_time": gettext_noop("Not sent in time"),
    "output_withheld_charged": gettext_noop("Video withheld and charged"),
    "output_withheld_goodwill": gettext_noop("Video withheld, charged, returned by support"),
    "not_received": gettext_noop("Not received"),
    "abandoned": gettext_noop("Withdrawn"),
    "deleted": gettext_noop("Deleted"),
    "invalid": gettext_noop("Invalid request"),
    "too_large": gettext_noop("Too large"),
    "id_reused": gettext_noop("Id used by another request"),
    "price_changed": gettext_noop("Price changed"),
    "model_unavailable": gettext_noop("Model unavailable"),
    "rate_limited": gettext_noop("Too many requests"),
    "unavailable": gettext_noop("Service unavailable"),
    "outcome_unknown": gettext_noop("Outcome not known yet"),
    "replay": gettext_noop("Already submitted"),
    "not_deletable": gettext_noop("Cannot be deleted now"),
    "not_cancellable": gettext_noop("Cannot be cancelled now"),
    "not_abandonable": gettext_noop("Already received"),
    "file_in_use": gettext_noop("File in use"),
    "limit_reached": gettext_noop("Limit reached"),
    "quota_exceeded": gettext_noop("Cloud space full"),
    "file_not_found": gettext_noop("File not found"),
    "quarantine": gettext_noop("Service being restored"),
    "not_authenticated": gettext_noop("Not signed in"),
    "permission_denied": gettext_noop("Not allowed"),
    "not_found": gettext_noop("Not found"),
    "method_not_allowed": gettext_noop("Method not allowed"),
    "not_acceptable": gettext_noop("Format not available"),
    "unsupported_media_type": gettext_noop("Content type not supported"),
    "version_required": gettext_noop("Version required"),
    "canvas_changed": gettext_noop("Canvas changed elsewhere"),
    "internal_error": gettext_noop("Internal error"),
    "inconsistent": gettext_noop("Record being checked"),
}

# The identical request, with the same id, may be sent again later and can then be accepted.
SAME_REQUEST_LATER = frozenset(
    {"not_received", "rate_limited", "unavailable", "outcome_unknown", "quarantine", "internal_error"}
)

# What happened to the money, by the first letter of the row; exceptions by code.
_MONEY_BY_GROUP = {
    "C": "not_charged",
    "D": "returned",
    "E": "charged",
    "F": "not_charged",
    "G": "not_charged",
}
_MONEY_BY_CODE = {
    "output_withheld_goodwill": "charged_and_returned_by_support",
    "deleted": "as_told",
    "invalid": "unchanged",
    "too_large": "unchanged",
    "rate_limited": "unchanged",
    "replay": "charged_once",
    "unavailable": "unchanged",
    "outcome_unknown": "charged_at_most_once",
    "quarantine": "charged_at_most_once",
    "internal_error": "charged_at_most_once",
    "not_deletable": "unchanged",
    "not_cancellable": "unchanged",
    "file_in_use": "unchanged",
    "inconsistent": "see_statement",
}


@dataclass(frozen=True, kw_only=True)
class ErrorDoc:
    """One entry of `docs/errors.md`; `row` tells the rows of one code apart.

    `http_status` is None for codes that appear only inside a task. `retryable`: for an answer, the identical
    request may be sent again; for a failed task, the same order may be placed anew under a new id.
    """

    row: str
    code: str
    http_status: int | None
    title: str
    text_en: str
    text_zh: str
    retryable: bool
    money: str
    variables: frozenset[str]


def problem_title(code: str, language: str | None = None) -> str:
    """The short title of a code in the given language, or the active one.

    Raises:
        KeyError: the code is not in the catalogue.
    """
    with in_language(language):
        return gettext(TITLES[code])


def error_catalogue() -> list[ErrorDoc]:
    """Every code that an error, an absent id or a failed task may carry, in the catalogue's order."""
    documented = [row for row in ALL_ROWS if row.id[0] not in "AB" and row.code != "replay"]
    return [
        ErrorDoc(
            row=row.id,
            code=row.code,
            http_status=row.http_status,
            title=problem_title(row.code, "en"),
            text_en=_template(row.id, "en"),
            text_zh=_template(row.id, "zh-hans"),
            retryable=row.code in SAME_REQUEST_LATER or row.retry == "again",
            money=_MONEY_BY_CODE.get(row.code) or _MONEY_BY_GROUP.get(row.id[0], "unchanged"),
            variables=row.variables,
        )
        for row in documented
    ]


def _template(row_id: str, language: str) -> str:
    """The translated sentence with its `{variables}` left in, in the form for several."""
    row = ROWS[row_id]
    placeholders = {name: f"{{{name}}}" for name in variables_of(row.msgid)}
    with in_language(language):
        if row.plural_msgid is None:
            return gettext(row.msgid).format_map(placeholders)
        return ngettext(row.msgid, row.plural_msgid, 2).format_map(placeholders)
