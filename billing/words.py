"""The kinds of transfer in people's words."""

from django.utils.translation import gettext, gettext_noop

KINDS = {
    "top_up": gettext_noop("Money added"),
    "charge": gettext_noop("Held for a video"),
    "settle": gettext_noop("Charged for a video"),
    "refund": gettext_noop("Returned"),
    "goodwill": gettext_noop("Returned by support"),
    "adjustment": gettext_noop("Correction"),
}


def kind_word(kind: str) -> str:
    return gettext(KINDS[kind]) if kind in KINDS else kind
