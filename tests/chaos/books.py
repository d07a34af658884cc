"""What the database says after a run, as JSON; runs in the product's environment."""

import json
import sys
from collections import Counter
from typing import Any
from uuid import UUID

from accounts.models import User
from billing.kinds import Kind
from billing.models import Account, Charge, Transfer
from tests.invariants_check import violations
from tombstones.models import Claim
from videos.models import Attempt, VideoTask


def main() -> None:
    """Violations by the second opinion, every claim with its money, and every owner's balance."""
    json.dump(
        {"violations": violations(), "claims": claims(), "owners": owners(), "attempts": attempts()},
        sys.stdout,
    )


def claims() -> dict[str, dict[str, Any]]:
    """Client id → owner, state, what was charged and what came back, in millionths."""
    returned: Counter[UUID] = Counter()
    for charge_id, micros in Transfer.objects.filter(kind=Kind.REFUND).values_list("charge", "amount_micros"):
        returned[charge_id] += micros
    charges = {charge.pk: charge for charge in Charge.objects.select_related("resolution")}
    tasks = {task.pk: task for task in VideoTask.objects.all()}
    names = dict(User.objects.values_list("pk", "username"))
    found: dict[str, dict[str, Any]] = {}
    for claim in Claim.objects.all():
        charge, task = charges.get(claim.pk), tasks.get(claim.pk)
        found[claim.client_id] = {
            "owner": names[claim.owner_id],
            "state": task.state if task else claim.reason,
            "charged": charge.amount_micros if charge else 0,
            "returned": returned[claim.pk],
            "is_resolved": charge is None or hasattr(charge, "resolution"),
        }
    return found


def owners() -> dict[str, dict[str, int]]:
    """Name → balance and all that was topped up, in millionths."""
    names = dict(User.objects.values_list("pk", "username"))
    found: dict[str, dict[str, int]] = {}
    for account in Account.objects.all():
        came = Transfer.objects.filter(owner_id=account.pk, kind=Kind.TOP_UP)
        found[names[account.pk]] = {
            "balance": account.balance_micros,
            "topped_up": sum(came.values_list("amount_micros", flat=True)),
        }
    return found


def attempts() -> dict[str, int]:
    """Outcome and reason → how many."""
    found: dict[str, int] = {}
    for outcome, reason in Attempt.objects.values_list("outcome", "reason"):
        name = f"{outcome} {reason}".strip()
        found[name] = found.get(name, 0) + 1
    return found
