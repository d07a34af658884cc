from itertools import groupby
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from videos.messages import ErrorDoc, error_catalogue

PAGE = "docs/errors.md"
INTRODUCTION = """# Errors

Every code that an error, an absent id or a failed task may carry. Codes are stable; sentences may be
improved. A problem document (RFC 9457) names the code in `code` and on the `type` address; its `detail` is
the sentence below in the reader's language.

*Again*: for an answer, the identical request with the same id may be sent again and can then be accepted; for
a failed task, the same order may be placed anew under a new id. *Money* says what the sentence says, for
programs.

This page is written by `manage.py write_error_docs` from the catalogue; edit the catalogue instead.
"""
MONEY = {
    "not_charged": "nothing was charged",
    "returned": "all of it is back in the balance",
    "charged": "charged, as announced before ordering",
    "charged_and_returned_by_support": "charged, and returned by support",
    "as_told": "as the sentence says",
    "unchanged": "this request changed nothing",
    "charged_once": "charged once, by the first request",
    "charged_at_most_once": "not known yet; at most once in any case",
    "see_statement": "as the statement says",
}


class Command(BaseCommand):
    help = f"Write {PAGE} from the catalogue of messages."

    def handle(self, *args: Any, **options: Any) -> None:
        (Path(settings.BASE_DIR) / PAGE).write_text(error_page(), encoding="utf-8")
        self.stdout.write(f"Wrote {PAGE}.")


def error_page() -> str:
    """The whole page, which depends on the catalogue alone. Codes keep the catalogue's order."""
    catalogue = error_catalogue()
    order = list(dict.fromkeys(doc.code for doc in catalogue))
    docs = sorted(catalogue, key=lambda doc: order.index(doc.code))
    sections = [_section(code, list(rows)) for code, rows in groupby(docs, key=lambda doc: doc.code)]
    return "\n".join([INTRODUCTION, *sections])


def _section(code: str, docs: list[ErrorDoc]) -> str:
    statuses = " or ".join(dict.fromkeys(str(doc.http_status) for doc in docs if doc.http_status))
    again = "yes" if any(doc.retryable for doc in docs) else "no"
    money = "; or ".join(dict.fromkeys(MONEY[doc.money] for doc in docs))
    lines = [
        f"## {code}",
        "",
        f"{docs[0].title}. HTTP: {statuses or 'none, only in a task'}. Again: {again}. Money: {money}.",
        "",
    ]
    for doc in docs:
        lines += [f"- {doc.text_en}", f"- {doc.text_zh}"]
    return "\n".join([*lines, ""])
