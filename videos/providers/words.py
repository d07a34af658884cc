"""The one shared table of the spellings in which providers name the state of a job.

An adapter translates its own documented words first and asks here before it calls a word unseen, because
gateways and new versions respell them. Case, white space, `-` and `_` do not matter.
"""

import re
from enum import StrEnum
from types import MappingProxyType


class JobWord(StrEnum):
    """What a spelling means. The four bad ends stay apart: they are the reason that is kept."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REJECTED = "rejected"


_SPELLINGS = {
    JobWord.WAITING: (
        "in_queue queued queue queueing queuing pending waiting submitted created accepted scheduled"
        " not_started preparing starting throttled suspended"
    ),
    JobWord.RUNNING: (
        "in_progress running processing process progress started generating rendering working active dreaming"
    ),
    JobWord.SUCCEEDED: "succeeded succeed success successful completed complete done finished finish ok",
    JobWord.FAILED: "failed fail failure error errored",
    JobWord.CANCELLED: "cancelled canceled cancel cancellation_completed",
    JobWord.EXPIRED: "expired expire timeout timed_out time_out aborted",
    JobWord.REJECTED: "rejected reject refused denied",
}
_TABLE = MappingProxyType(
    {spelling: word for word, spellings in _SPELLINGS.items() for spelling in spellings.split()}
)
MAX_WORD = 60


def known_word(spelling: object) -> JobWord | None:
    """What a provider's word means, or None if no table knows it (then: keep polling)."""
    if not isinstance(spelling, str) or len(spelling) > MAX_WORD:
        return None
    return _TABLE.get(re.sub(r"[\s_-]+", "_", spelling.strip()).casefold())
