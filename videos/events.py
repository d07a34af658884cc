"""What happened to a video, in plain words, and its ledger lines."""

from typing import Any

from django.utils.translation import gettext, gettext_noop

from billing.kinds import ChargeState
from billing.models import Transfer
from billing.words import kind_word
from videos import queries
from videos.queries import TaskView

# cause or state of an event → what a person reads; the first that fits counts
WORDS = {
    "submitted": gettext_noop("Your request was saved and its price held."),
    "insufficient_balance": gettext_noop("Your balance did not cover it; nothing was charged."),
    "accepted": gettext_noop("The provider took it."),
    "webhook": gettext_noop("The provider called back: it has your request."),
    "lookup": gettext_noop("Your request was found in the provider's list."),
    "late_answer": gettext_noop("The provider's answer arrived late."),
    "person": gettext_noop("Our team found your request at the provider."),
    "proven_not_executed": gettext_noop("It is proven that it did not run; it is sent again, held once."),
    "cancel_requested": gettext_noop("You asked to cancel."),
    "completed": gettext_noop("The video was saved to your cloud space, and the price was charged."),
    "completed_despite_cancel": gettext_noop("The video was finished before it could be cancelled."),
    "late_result_given": gettext_noop("The provider finished late; the video is yours at no charge."),
    "unknown": gettext_noop("The answer was lost; we are checking with the provider."),
    "processing": gettext_noop("The provider took it."),
}
# By how the charge of a failed task ended. Some models charge for what their content rules withhold.
FAILED_WORDS = {
    ChargeState.NOT_CHARGED: gettext_noop("It ended without a video; nothing was charged."),
    ChargeState.REFUNDED: gettext_noop("It ended without a video, and your money was returned."),
    ChargeState.SETTLED: gettext_noop("It ended without a video, and the model charges for that."),
    ChargeState.PARTIALLY_REFUNDED: gettext_noop(
        "It ended without a video, and part of the price was returned."
    ),
}


def timeline_of(view: TaskView) -> list[dict[str, Any]]:
    """The events of a task, oldest first: `at` and `text`."""
    words = {**WORDS, "failed": FAILED_WORDS[view.money]} if view.money in FAILED_WORDS else WORDS
    return [
        {"at": event.created_at, "text": gettext(words.get(event.cause) or words[event.to_state])}
        for event in queries.events_of(view.claim.pk)
        if event.cause in words or event.to_state in words
    ]


def transfers_of(view: TaskView) -> list[dict[str, Any]]:
    """The ledger lines of a task, oldest first."""
    signs = {"charge": "−", "refund": "+", "goodwill": "+"}
    return [
        {
            "created_at": transfer.created_at,
            "kind_word": kind_word(transfer.kind),
            "sign": signs.get(transfer.kind, ""),
            "amount_micros": transfer.amount_micros,
            "reference": transfer.reference,
        }
        for transfer in Transfer.objects.filter(charge_id=view.claim.pk).order_by("created_at", "id")
    ]
