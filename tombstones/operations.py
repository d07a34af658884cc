"""Claim, fence and bury. See Note [The claim comes first]."""

from datetime import datetime
from uuid import UUID

from django.db import IntegrityError

from core import db
from core.ids import new_id
from core.statements import insert
from tombstones.models import BurialReason, Claim, ClaimState

# Note [The claim comes first]
# One permanent row per (owner, client id), which submit and abandon both insert before anything else:
# * Looking for a tombstone before inserting the task lets a deletion that commits while the insert waits on
#   the unique index slip through, and the user pays twice.
# * A BEFORE INSERT trigger does not help: it runs before that wait.
# * With two tables, submit and abandon do not see each other at all: both succeed.
# The unique index decides instead: whoever comes second waits for the first to end and then sees it.
# tests/concurrency/test_claim_races.py shows each race with the guard removed.
# The primary key: a repeated transaction, whose first COMMIT took effect, meets its own claim.
TAKEN = (
    "tombstones_one_claim_per_owner_and_client_id",
    "tombstones_claim_is_never_replaced",
    "tombstones_claim_pkey",
)


class AlreadyClaimed(Exception):
    """This owner's id has a claim: answer from it."""


@db.transaction_required
def insert_claim(*, claim_id: UUID, owner_id: UUID, client_id: str, now: datetime) -> Claim:
    """Take the id for one task, for ever. Raises: AlreadyClaimed (the caller's transaction must roll
    back).
    """
    return _insert(Claim(id=claim_id, owner_id=owner_id, client_id=client_id, created_at=now))


@db.transaction_required
def insert_fence(*, owner_id: UUID, client_id: str, now: datetime) -> Claim:
    """Take the id so that no task can ever have it. Raises: AlreadyClaimed."""
    return _insert(
        Claim(
            id=new_id(),
            owner_id=owner_id,
            client_id=client_id,
            state=ClaimState.BURIED,
            reason=BurialReason.ABANDONED,
            created_at=now,
            buried_at=now,
        )
    )


@db.transaction_required
def bury(*, claim_id: UUID, reason: BurialReason, now: datetime) -> bool:
    """Turn a live claim into its tombstone; False when it was buried before."""
    return bool(
        Claim.objects.filter(pk=claim_id, state=ClaimState.LIVE).update(
            state=ClaimState.BURIED, reason=reason, buried_at=now
        )
    )


def _insert(claim: Claim) -> Claim:
    try:
        insert(claim)
    except IntegrityError as error:
        if db.broken_rule(error) in TAKEN:
            raise AlreadyClaimed(claim.client_id) from error
        raise
    return claim
