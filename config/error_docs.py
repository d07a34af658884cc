"""The page that the `type` of a problem document points to: every code, in the reader's language."""

from dataclasses import dataclass, field

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_GET

from videos.messages import error_catalogue, problem_title


@dataclass
class Entry:
    """One code with all the sentences it may come with."""

    code: str
    title: str
    status: int | None
    texts: list[str] = field(default_factory=list)


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    is_chinese = (get_language() or "").startswith("zh")
    entries: dict[str, Entry] = {}
    for error in error_catalogue():
        entry = entries.setdefault(
            error.code, Entry(code=error.code, title=problem_title(error.code), status=error.http_status)
        )
        entry.texts.append(error.text_zh if is_chinese else error.text_en)
    return render(request, "docs/errors.html", {"entries": entries.values()})
