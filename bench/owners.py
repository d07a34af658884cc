"""Owners with money and tokens, and finished videos; runs inside the product."""

from typing import Any

from accounts.models import ApiToken
from tests.makers import make_owner, submit, work

BALANCE = "900000000"  # nearly the most that one top-up may be


def make_owners(*, count: int) -> list[dict[str, str]]:
    """New owners, each with the strings by which the database knows them."""
    owners = []
    for _ in range(count):
        owner = make_owner(balance=BALANCE)
        token = ApiToken.objects.get(user=owner.user)
        owners.append(
            {"key": owner.key, "owner_id": str(owner.id), "token_id": str(token.pk), "digest": token.digest}
        )
    return owners


def make_completed(*, count: int) -> dict[str, Any]:
    """An owner with that many videos, made by the simulator; the key and the ids."""
    owner = make_owner(balance=BALANCE)
    ids = [submit(owner) for _ in range(count)]
    work()
    return {"key": owner.key, "ids": ids}
