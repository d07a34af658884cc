"""The invariants of money and memory, re-derived from the rows by the tests' own statements.

Independent of the product's queries on purpose: a mistake in those must not hide itself here.
"""

from collections import defaultdict
from typing import Any

from billing.models import Account, Charge, Resolution, Transfer
from tombstones.models import Claim
from videos.models import Attempt, VideoTask

UNFINISHED = {"submitting", "unknown", "processing"}


def assert_books_balance() -> None:
    """One claim an id, at most one task and charge a claim, every balance the sum of its transfers."""
    claims = {claim.pk: claim for claim in Claim.objects.all()}
    tasks = {task.pk: task for task in VideoTask.objects.all()}
    charges = {charge.pk: charge for charge in Charge.objects.all()}
    resolutions = {resolution.pk: resolution for resolution in Resolution.objects.all()}
    transfers = list(Transfer.objects.all())

    assert len({(claim.owner_id, claim.client_id) for claim in claims.values()}) == len(claims)
    _assert_claims_fit_tasks(claims, tasks, charges)
    _assert_accounts_are_their_transfers(transfers)
    _assert_each_charge_moved_once(charges, resolutions, transfers)
    unresolved = charges.keys() - resolutions.keys()
    unfinished = {key for key, task in tasks.items() if task.state in UNFINISHED}
    assert unresolved == unfinished
    clearing = sum(_signed(transfer, "clearing") for transfer in transfers)
    assert clearing == sum(charges[key].amount_micros for key in unresolved)
    for task in tasks.values():
        _assert_end_fits_money(task, charges, resolutions)
    accepted = Attempt.objects.filter(outcome="accepted").values_list("task_id", flat=True)
    assert len(set(accepted)) == len(accepted)


def _assert_claims_fit_tasks(claims: dict[Any, Any], tasks: dict[Any, Any], charges: dict[Any, Any]) -> None:
    for key, claim in claims.items():
        assert (claim.state == "live") == (key in tasks), claim
        if claim.reason == "abandoned":
            assert key not in charges, claim
    assert tasks.keys() <= claims.keys()
    assert charges.keys() <= claims.keys()


def _signed(transfer: Transfer, side: str) -> int:
    return transfer.amount_micros * ((transfer.credit == side) - (transfer.debit == side))


def _assert_accounts_are_their_transfers(transfers: list[Transfer]) -> None:
    sums: dict[Any, int] = defaultdict(int)
    for transfer in transfers:
        if moved := _signed(transfer, "owner"):
            sums[transfer.owner_id] += moved
    for account in Account.objects.all():
        assert account.balance_micros == sums.pop(account.owner_id, 0), account
        assert account.balance_micros >= 0, account
    assert not sums


def _assert_each_charge_moved_once(
    charges: dict[Any, Any], resolutions: dict[Any, Any], transfers: list[Transfer]
) -> None:
    moved: dict[Any, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for transfer in transfers:
        if transfer.charge_id is not None:
            moved[transfer.charge_id][transfer.kind].append(transfer.amount_micros)
    for key, charge in charges.items():
        resolution = resolutions.get(key)
        assert moved[key]["charge"] == [charge.amount_micros]
        settled = resolution.settled_micros if resolution else 0
        returned = resolution.returned_micros if resolution else 0
        assert moved[key]["settle"] == ([settled] if settled else [])
        assert moved[key]["refund"] == ([returned] if returned else [])
        assert returned + sum(moved[key]["goodwill"]) <= charge.amount_micros
        if resolution:
            assert settled + returned == charge.amount_micros
    assert moved.keys() == charges.keys()


def _assert_end_fits_money(task: Any, charges: dict[Any, Any], resolutions: dict[Any, Any]) -> None:
    if task.state == "completed":
        assert resolutions[task.pk].outcome == "settled"
    if task.state == "failed" and task.pk in charges:
        charge = charges[task.pk]
        assert resolutions[task.pk].outcome == "refunded" or charge.charges_on_refusal
