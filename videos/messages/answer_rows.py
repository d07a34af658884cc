"""The sentences of answers without a live task: absent ids, refusals, the protocol (rows F, G and P)."""

from django.utils.translation import gettext_noop

from core.messages import ngettext_noop
from videos.messages.row import Row

ANSWER_ROWS = (
    # F. No task.
    Row(
        "F1",
        "not_received",
        gettext_noop("The server has not received this request; nothing has been charged so far."),
        http_status=404,
    ),
    Row(
        "F2",
        "abandoned",
        gettext_noop("This request was not accepted and will not be accepted any more; nothing was charged."),
        http_status=410,
    ),
    Row(
        "F3",
        "deleted",
        gettext_noop(
            "This video was deleted on {date}; {net} had been charged, and it will not be made or charged "
            "again."
        ),
        http_status=410,
    ),
    Row(
        "F4",
        "deleted",
        gettext_noop(
            "This record was deleted on {date}; {amount} had been returned to your balance, and it will not "
            "be charged again."
        ),
        http_status=410,
    ),
    Row(
        "F5",
        "deleted",
        gettext_noop("This record was deleted on {date}; nothing had been charged."),
        http_status=410,
    ),
    # G. Refusals that leave no row, and replays.
    Row(
        "G1",
        "invalid",
        gettext_noop("{field} is not valid: {limit}; this request changed nothing."),
        http_status=400,
    ),
    Row(
        "G2",
        "too_large",
        gettext_noop("This is {size} and the limit is {limit}; this request changed nothing."),
        http_status=413,
    ),
    Row(
        "G3",
        "id_reused",
        gettext_noop(
            "This id already belongs to another request, which is unchanged; nothing was charged for this "
            "one."
        ),
        http_status=422,
    ),
    Row(
        "G4",
        "price_changed",
        gettext_noop("The price changed from {old} to {new} before you submitted; nothing was charged."),
        http_status=409,
    ),
    Row(
        "G5",
        "model_unavailable",
        gettext_noop("{model} cannot be ordered at the moment; nothing was charged."),
        http_status=400,
    ),
    Row(
        "G6",
        "rate_limited",
        gettext_noop(
            "Too many requests at once, so this attempt was not taken and changed nothing; it can be sent "
            "again in {seconds} s."
        ),
        http_status=429,
    ),
    Row(
        "G7",
        "unavailable",
        gettext_noop(
            "The service cannot take requests right now, and this attempt saved nothing; you will not be "
            "charged twice."
        ),
        http_status=503,
    ),
    Row(
        "G7u",
        "outcome_unknown",
        gettext_noop(
            "The connection broke while saving, so it is not yet known whether your request was kept; asking "
            "again with the same id is safe, and you will not be charged twice."
        ),
        http_status=503,
    ),
    Row(
        "G8",
        "replay",
        gettext_noop("This request was already submitted; you see that one, and it is not charged again."),
        http_status=200,
    ),
    Row(
        "G9",
        "not_deletable",
        gettext_noop(
            "This cannot be deleted while its outcome is open, because it is the proof for your {amount}; it "
            "can be deleted once it ends."
        ),
        http_status=409,
    ),
    Row(
        "G10",
        "not_cancellable",
        gettext_noop("This cannot be cancelled now. {task}"),
        http_status=409,
    ),
    Row(
        "G11",
        "file_in_use",
        *ngettext_noop(
            "This file cannot be deleted yet, because {n} running video uses it; nothing was deleted and "
            "nothing changes in your balance.",
            "This file cannot be deleted yet, because {n} running videos use it; nothing was deleted and "
            "nothing changes in your balance.",
        ),
        counted="n",
        http_status=409,
    ),
    Row(
        "G12",
        "limit_reached",
        gettext_noop("Not started, because it would pass the limit of {limit}; nothing was charged."),
        http_status=409,
    ),
    Row(
        "G13",
        "quota_exceeded",
        gettext_noop(
            "Not started, because your cloud space is full ({used} of {quota}); nothing was charged."
        ),
        http_status=409,
    ),
    Row(
        "G14",
        "file_not_found",
        gettext_noop("Not started, because the chosen file no longer exists; nothing was charged."),
        http_status=400,
    ),
    Row(
        "G15",
        "quarantine",
        gettext_noop(
            "The service is being restored and does not yet know this request; you will not be charged twice."
        ),
        http_status=503,
    ),
    # P. Of the protocol, about no task.
    Row(
        "P1",
        "not_authenticated",
        gettext_noop("Sign in, or send a valid token; this request changed nothing."),
        http_status=401,
    ),
    Row(
        "P2",
        "permission_denied",
        gettext_noop(
            "This is not allowed with this account or from this page; this request changed nothing."
        ),
        http_status=403,
    ),
    Row(
        "P3",
        "not_found",
        gettext_noop("There is nothing at this address; this request changed nothing."),
        http_status=404,
    ),
    Row(
        "P4",
        "method_not_allowed",
        gettext_noop("This address does not take this method; this request changed nothing."),
        http_status=405,
    ),
    Row(
        "P5",
        "not_acceptable",
        gettext_noop("This address cannot answer in the format asked for; this request changed nothing."),
        http_status=406,
    ),
    Row(
        "P6",
        "unsupported_media_type",
        gettext_noop("The body is not of a type that this address takes; this request changed nothing."),
        http_status=415,
    ),
    Row(
        "P7",
        "version_required",
        gettext_noop("The version of the canvas that was changed is missing; this request changed nothing."),
        http_status=428,
    ),
    Row(
        "P8",
        "canvas_changed",
        gettext_noop(
            "This canvas was changed in another tab; your version is kept as a copy, and no video was started"
            " or charged."
        ),
        http_status=409,
    ),
    Row(
        "P9",
        "internal_error",
        gettext_noop(
            "Sorry, something failed on our side before this was answered; asking again with the same id is "
            "safe, and you will not be charged twice."
        ),
        http_status=500,
    ),
)
