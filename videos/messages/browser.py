"""What only the browser knows: whether its own request arrived, whether it is online, what it remembers.

The page gives these to its scripts as JSON. A script fills the `{variables}`: amounts by the one formatter of
the front end, everything as plain text.
"""

from django.utils.translation import gettext, gettext_noop, pgettext

from core.messages import in_language

BROWSER_MESSAGES = {
    "sending": gettext_noop("Sending; even if you press again, it is charged only once."),
    "confirming": gettext_noop(
        "No answer arrived, and we are checking whether your request got through; you will not be "
        "charged twice."
    ),
    "resending": gettext_noop(
        "It had not arrived, so the same request is being sent again ({n} of 3); you will not be "
        "charged twice."
    ),
    "body_lost": gettext_noop(
        "Checking whether your request got through; its text is no longer in this browser, so nothing "
        "is sent again, and nothing has been charged so far."
    ),
    "abandoned": gettext_noop(
        "The server did not accept it and will not any more; nothing was charged, and you can start anew."
    ),
    "abandon_unconfirmed": gettext_noop(
        "We cannot yet confirm that it never arrived; please wait before starting anew, and you will "
        "not be charged twice."
    ),
    "read_failed": gettext_noop(
        "The status cannot be refreshed and is tried again in {seconds} s; this is the state of {time},"
        " and you will not be charged twice."
    ),
    "offline": gettext_noop(
        "You are offline; submitted videos go on without this page, and nothing new is sent or charged."
    ),
    "back_online": gettext_noop("Back online; all states are up to date, and nothing was charged twice."),
    "signed_out": gettext_noop(
        "Sign in again as {owner} to see this video; it goes on meanwhile and is not charged again."
    ),
    "other_owner": gettext_noop(
        "This browser holds a request of another account; it is not sent or charged under yours."
    ),
    "record_gone": gettext_noop(
        "The server no longer has this record; your statement shows what was charged, and generating it"
        " again is a new charge."
    ),
    "deleted_elsewhere": gettext_noop(
        "This was deleted elsewhere; it will not be made again, and your balance does not change."
    ),
    "storage_refused": gettext_noop(
        "This browser does not let us keep your request, so leave this page open until it is confirmed;"
        " it is charged only once."
    ),
    "insufficient_before": gettext_noop(
        "You need {missing} more for this video; nothing is charged until you start it."
    ),
    "same_request": gettext_noop(
        "The same request has been running for {elapsed}; make another one for {price}?"
    ),
    "try_again_final": gettext_noop(
        "This makes a new video for {price}; what happened to the earlier one stays as shown."
    ),
    "try_again_open": gettext_noop(
        "The earlier request is still open, so its state is shown instead of paying again."
    ),
    "older_page": gettext_noop(
        "An earlier version stopped watching this video; we are reading its real state, which costs nothing."
    ),
    "still_running": gettext_noop(
        "Still running; you can close this page, and the video will be here and in your cloud space; "
        "{amount} is held."
    ),
    "cancel_not_sent": gettext_noop("Cancel now: it has not been sent, and all {amount} comes back."),
    "cancel_running": gettext_noop(
        "Ask the provider to stop: if it has already started you may still be charged up to {amount}."
    ),
    "canvas_changed": gettext_noop(
        "This canvas was changed in another tab; your version is kept as a copy, and no video was "
        "started or charged."
    ),
    "saving_failed": gettext_noop(
        "Changes are not saved yet and are tried again; videos already started are not affected or "
        "charged again."
    ),
    "new_version": gettext_noop("A newer version is ready; reloading does not stop or repeat any video."),
}

# Words that a script writes when something changes without a new page.
BROWSER_WORDS = {
    "seconds": gettext_noop("{n} s"),
    "minutes": gettext_noop("{n} min"),
    "hours": gettext_noop("{n} h"),
    "just_now": gettext_noop("just now"),
    "minutes_ago": gettext_noop("{n} min ago"),
    "hours_ago": gettext_noop("{n} h ago"),
    "day_ago": gettext_noop("1 day ago"),
    "days_ago": gettext_noop("{n} days ago"),
    "money_not_charged": gettext_noop("Not charged"),
    "money_charged": gettext_noop("Held {amount}"),
    "money_settled": gettext_noop("Charged {amount}"),
    "money_partially_refunded": gettext_noop("Charged {net} · {refunded} back"),
    "money_refunded": gettext_noop("Back {amount}"),
    "edit_and_try_again": gettext_noop("Edit and try again"),
    "try_again": gettext_noop("Try again · {price}"),
    "one_ready": gettext_noop("1 video ready"),
    "many_ready": gettext_noop("{n} videos ready"),
    "only_failed": gettext_noop("Without a video: {m}"),
    "only_failed_returned": gettext_noop("Without a video: {m}, {sum} back in your balance"),
    "ready_and_failed": gettext_noop("Ready: {n}; without a video: {m}"),
    "ready_and_failed_returned": gettext_noop("Ready: {n}; without a video: {m}, {sum} back in your balance"),
    "title_ready": gettext_noop("({n}) ready · Oncereel"),
}

CHIP_CONTEXT = "video chip"  # short words mean different things elsewhere
BROWSER_CHIPS = {
    "video_completed": "Ready",
    "video_failed": "No video",
    "video_review": "With our team",
    "video_submitting": "Waiting",
    "video_unknown": "Checking",
    "video_late": "Slow",
    "video_processing": "Making",
    "video_processing_progress": "Making {progress}",
    "video_abandoned": "Withdrawn",
    "video_deleted": "Deleted",
}


def browser_messages(language: str | None = None) -> dict[str, str]:
    """All that a page's script may say, by slug, with `{name}` placeholders: the sentences and the words.

    In the given language, or the active one.
    """
    with in_language(language):
        sentences = {slug: gettext(sentence) for slug, sentence in BROWSER_MESSAGES.items()}
    return sentences | browser_words(language)


def browser_words(language: str | None = None) -> dict[str, str]:
    """Words of chips, durations and buttons by slug, in the given language or the active one."""
    with in_language(language):
        words = {slug: gettext(word) for slug, word in BROWSER_WORDS.items()}
        return words | {slug: pgettext(CHIP_CONTEXT, word) for slug, word in BROWSER_CHIPS.items()}
