"""Reads of claims."""

from uuid import UUID

from tombstones.models import Claim


def claim_of(*, owner_id: UUID, client_id: str) -> Claim | None:
    """The claim of this owner's id, live or buried; a stranger's is never seen."""
    return Claim.objects.filter(owner_id=owner_id, client_id=client_id).first()
