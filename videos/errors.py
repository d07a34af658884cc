"""What operations on videos refuse. Texts are in the message catalogue."""

from core.errors import DomainError


class ModelUnavailable(DomainError):
    """`model` cannot be ordered: unknown, switched off, or without a price. Nothing was charged."""

    code = "model_unavailable"
    status = 400


class IdReused(DomainError):
    """This id belongs to another request of the owner, which is unchanged."""

    code = "id_reused"
    status = 422


class NotReceived(DomainError):
    """No such id of this owner. A stranger's id is answered the same."""

    code = "not_received"
    status = 404


class Quarantined(DomainError):
    """After a restore the tail of the memory may be missing, so an unseen id is not judged yet."""

    code = "quarantine"
    status = 503


class Gone(DomainError):
    """The id is buried: `deleted` or `abandoned`, for ever."""

    code = "deleted"
    status = 410


class NotDeletable(DomainError):
    """The task's outcome is open, so it is the proof for the owner's money. `amount` in micro-units."""

    code = "not_deletable"
    status = 409


class NotCancellable(DomainError):
    """It cannot be cancelled (any more)."""

    code = "not_cancellable"
    status = 409


class NotAbandonable(DomainError):
    """The id did arrive: its task is alive."""

    code = "not_abandonable"
    status = 409


class ActionRefused(DomainError):
    """A staff action that the task's state does not allow; `reason` says why. Nothing was changed."""

    code = "action_refused"
    status = 409
