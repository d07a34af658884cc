"""The sentences of a task that exists: unfinished, completed, not started, failed (rows A to E, and Z)."""

from django.utils.translation import gettext_noop

from videos.messages.row import Row

SUBMITTING = frozenset({("submitting", "charged")})
UNKNOWN = frozenset({("unknown", "charged")})
PROCESSING = frozenset({("processing", "charged")})
UNFINISHED = SUBMITTING | UNKNOWN | PROCESSING
COMPLETED_SETTLED = frozenset({("completed", "settled")})
COMPLETED_PARTIALLY = frozenset({("completed", "partially_refunded")})
COMPLETED_GOODWILL = frozenset({("completed", "partially_refunded"), ("completed", "refunded")})
NOT_STARTED = frozenset({("failed", "not_charged")})
FAILED_REFUNDED = frozenset({("failed", "refunded")})
FAILED_SETTLED = frozenset({("failed", "settled")})
FAILED_GOODWILL = frozenset({("failed", "partially_refunded"), ("failed", "refunded")})

TASK_ROWS = (
    # A. Unfinished: the money is held.
    Row(
        "A1",
        "submitting",
        gettext_noop(
            "Your request is saved and waiting to be sent; {amount} is held and comes back in full if no "
            "video is made."
        ),
        allowed_pairs=SUBMITTING,
    ),
    Row(
        "A2",
        "provider_busy",
        gettext_noop(
            "{model} is busy, so your request waits and is tried again at {when}; {amount} is held and "
            "nothing more will be charged."
        ),
        allowed_pairs=SUBMITTING,
    ),
    Row(
        "A2n",
        "provider_busy",
        gettext_noop(
            "{model} is busy, so your request waits and is tried again by itself; {amount} is held and "
            "nothing more will be charged."
        ),
        allowed_pairs=SUBMITTING,
    ),
    Row(
        "A3",
        "provider_paused",
        gettext_noop(
            "{model} is paused on our side and your request waits; {amount} is held, and cancelling now "
            "returns all of it."
        ),
        allowed_pairs=SUBMITTING,
    ),
    Row(
        "A4",
        "sending_again",
        gettext_noop(
            "The last attempt is proven not to have run, so it is being sent again; {amount} is held once and"
            " will not be charged twice."
        ),
        allowed_pairs=SUBMITTING,
    ),
    Row(
        "A5",
        "unknown",
        gettext_noop(
            "Your request was sent but the answer was lost, and we are checking with the provider; {amount} "
            "is held and will not be charged twice."
        ),
        allowed_pairs=UNKNOWN,
    ),
    Row(
        "A6",
        "unknown_review",
        gettext_noop(
            "It is still unclear whether the provider took your request, so a person is checking; {amount} is"
            " held and comes back in full if nothing is found by {deadline}."
        ),
        allowed_pairs=UNKNOWN,
    ),
    Row(
        "A6n",
        "unknown_review",
        gettext_noop(
            "It is still unclear whether the provider took your request, so a person is checking; {amount} is"
            " held and comes back in full if nothing is found."
        ),
        allowed_pairs=UNKNOWN,
    ),
    Row(
        "A7",
        "queued",
        gettext_noop("Your video is waiting in the provider's queue, number {position}; {amount} is held."),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A7n",
        "queued",
        gettext_noop("Your video is waiting in the provider's queue; {amount} is held."),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A8",
        "processing",
        gettext_noop(
            "Your video is being made, usually in {low} to {high}; {amount} is held and comes back in full if"
            " no video is made."
        ),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A8n",
        "processing",
        gettext_noop("Your video is being made; {amount} is held."),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A9",
        "storing",
        gettext_noop(
            "Your video is made and is being saved to your cloud space; {amount} stays held until it is safe."
        ),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A10",
        "late",
        gettext_noop(
            "This takes longer than usual ({elapsed}, usually {high}) and is still running; {amount} is held "
            "and nothing more will be charged."
        ),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A10n",
        "late",
        gettext_noop(
            "This takes longer than usual ({elapsed} so far) and is still running; {amount} is held and "
            "nothing more will be charged."
        ),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A11",
        "stuck",
        gettext_noop(
            "The provider has not finished after {elapsed} and our team has been alerted; {amount} stays held"
            " and there is no need to submit again."
        ),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A12",
        "provider_unreachable",
        gettext_noop(
            "The provider cannot be reached right now and we keep asking; your task is kept and {amount} "
            "stays held."
        ),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A13",
        "cancelling",
        gettext_noop(
            "Cancelling was requested and the provider has not confirmed it yet; {amount} stays held until it"
            " is clear."
        ),
        allowed_pairs=PROCESSING,
    ),
    Row(
        "A14",
        "delete_requested",
        gettext_noop(
            "The canvas was deleted, so this video is removed when it ends; {amount} is held, charged if a "
            "video is made and returned if not."
        ),
        allowed_pairs=UNFINISHED,
    ),
    # B. Completed.
    Row(
        "B1",
        "completed",
        gettext_noop("Your video is ready; {amount} was charged."),
        allowed_pairs=COMPLETED_SETTLED,
    ),
    Row(
        "B2",
        "completed_less_used",
        gettext_noop(
            "Your video is ready and used less than estimated; {net} was charged and {refunded} is back in "
            "your balance."
        ),
        allowed_pairs=COMPLETED_PARTIALLY,
    ),
    Row(
        "B3",
        "completed_goodwill",
        gettext_noop(
            "Your video is ready; {amount} was charged, and support returned {refunded} to your balance."
        ),
        allowed_pairs=COMPLETED_GOODWILL,
    ),
    Row(
        "B4",
        "completed_despite_cancel",
        gettext_noop(
            "The video was finished before it could be cancelled and is ready; {amount} was charged."
        ),
        allowed_pairs=COMPLETED_SETTLED,
    ),
    # C. Not started, remembered for ever with the figures of the refusal.
    Row(
        "C1",
        "insufficient_balance",
        gettext_noop(
            "Not started, because it costs {price} and {balance} is available; nothing was charged."
        ),
        allowed_pairs=NOT_STARTED,
        http_status=402,
    ),
    # D. Failed, and all of the money is back.
    Row(
        "D1",
        "provider_failed",
        gettext_noop("The provider could not make this video; {amount} is back in your balance."),
        allowed_pairs=FAILED_REFUNDED,
        retry="again",
    ),
    Row(
        "D2",
        "input_invalid",
        gettext_noop("The provider did not accept the {field}; {amount} is back in your balance."),
        allowed_pairs=FAILED_REFUNDED,
        retry="edit",
    ),
    Row(
        "D3",
        "prompt_refused",
        gettext_noop(
            "The provider's content rules did not allow this prompt; {amount} is back in your balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
        retry="edit",
    ),
    Row(
        "D4",
        "image_refused",
        gettext_noop(
            "The provider's content rules did not allow this image; {amount} is back in your balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
        retry="edit",
    ),
    Row(
        "D5",
        "output_withheld",
        gettext_noop(
            "The video was made, but the provider's content rules withheld it; {amount} is back in your "
            "balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
    ),
    Row(
        "D6",
        "no_result",
        gettext_noop(
            "The provider reported success but delivered no video; {amount} is back in your balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
        retry="again",
    ),
    Row(
        "D7",
        "result_lost",
        gettext_noop(
            "Sorry, the finished video could not be fetched before its link expired; {amount} is back in your"
            " balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
        retry="again",
    ),
    Row(
        "D8",
        "never_received",
        gettext_noop(
            "The provider confirmed that it never received this request; {amount} is back in your balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
        retry="again",
    ),
    Row(
        "D9",
        "time_limit",
        gettext_noop(
            "After {duration} it is still unclear what became of this request, so it was closed; {amount} is "
            "back in your balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
        retry="again",
    ),
    Row(
        "D10",
        "cancelled",
        gettext_noop("Cancelled as you asked; {amount} is back in your balance."),
        allowed_pairs=FAILED_REFUNDED,
    ),
    Row(
        "D11",
        "closed_by_support",
        gettext_noop("Support closed this request; {amount} is back in your balance."),
        allowed_pairs=FAILED_REFUNDED,
    ),
    Row(
        "D12",
        "late_result_given",
        gettext_noop(
            "The provider finished after your money was returned, so the video is in your cloud space at no "
            "charge; the {amount} stays in your balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
    ),
    Row(
        "D13",
        "not_sent_in_time",
        gettext_noop(
            "It could not be sent for {duration}, so it was closed; {amount} is back in your balance."
        ),
        allowed_pairs=FAILED_REFUNDED,
    ),
    # E. Failed under the rule announced before ordering: the provider charges for a refusal.
    Row(
        "E1",
        "output_withheld_charged",
        gettext_noop(
            "The provider made a video but its content rules withheld it, and {model} charges for that, as "
            "shown before you ordered; {amount} was charged."
        ),
        allowed_pairs=FAILED_SETTLED,
    ),
    Row(
        "E2",
        "output_withheld_goodwill",
        gettext_noop(
            "The provider's content rules withheld the video, which {model} charges for; {amount} was "
            "charged, and support returned {refunded} to your balance."
        ),
        allowed_pairs=FAILED_GOODWILL,
    ),
    # Z. Never legal; rendered only with an alarm.
    Row(
        "Z",
        "inconsistent",
        gettext_noop(
            "This record does not add up and is being checked; your statement shows what was really charged."
        ),
    ),
)
