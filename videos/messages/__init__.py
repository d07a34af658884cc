"""Every sentence people read about a video and its money, in both languages, with stable codes.

Describe first (`describe_task`, `describe_absent`, `describe_refusal`), which is pure; then `render` in a
language. API, pages, admin, mail and webhooks use the same functions, so that they cannot disagree.
"""

from videos.messages.browser import browser_messages, browser_words
from videos.messages.chips import Chip, absent_chip, money_chip, video_chip
from videos.messages.errors import ErrorDoc, error_catalogue, problem_title
from videos.messages.refusals import Limit, describe_absent, describe_refusal
from videos.messages.row import Message, Row
from videos.messages.rows import ALL_ROWS, FAILURE_CODES, ROWS, render, retry_label
from videos.messages.task import TaskFacts, describe_task

__all__ = [
    "ALL_ROWS",
    "FAILURE_CODES",
    "ROWS",
    "Chip",
    "ErrorDoc",
    "Limit",
    "Message",
    "Row",
    "TaskFacts",
    "absent_chip",
    "browser_messages",
    "browser_words",
    "describe_absent",
    "describe_refusal",
    "describe_task",
    "error_catalogue",
    "money_chip",
    "problem_title",
    "render",
    "retry_label",
    "video_chip",
]
