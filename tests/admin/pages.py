"""Reads admin pages as a person does: their text, without the markup."""

import html
import re
from typing import Any

from django.urls import reverse


def text_of(response: Any) -> str:
    """The words of a page, one space between them."""
    body = response.content.decode()
    body = body[body.index("<body") :]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).replace("\N{NO-BREAK SPACE}", " ").split())


def task_page(task_id: Any) -> str:
    return reverse("admin:videos_videotask_change", args=[task_id])


def action_page(task_id: Any, action: str) -> str:
    return reverse("admin:videos_videotask_action", args=[task_id, action])


def goodwill_page(task_id: Any) -> str:
    return reverse("admin:videos_videotask_goodwill", args=[task_id])
