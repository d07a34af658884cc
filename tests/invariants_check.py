"""The invariants of the whole, asked after every case: by the product's own audit and by a second opinion.

The second opinion is short, reads the rows directly and shares no code with the audit, so that one blind spot
does not hide in both. The provider's own journal says how often something really ran.
"""

import re
from collections import Counter
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, Sum

from billing.kinds import Kind, Leg
from billing.models import Account, Charge, Resolution, Transfer
from tombstones.models import Claim, ClaimState
from videos.audit import violations as violations_of_audit
from videos.models import Attempt, Evidence, OrphanJob, TaskEvent, VideoTask
from videos.states import FINAL, Outcome, State

WITH_MARKERS = "fal"  # its jobs carry our call-back key; those of a blind provider can only be counted
WEBHOOK_KEY = re.compile(r"[0-9a-f]{64}")  # begins with the task's id


def assert_invariants(simulator: Any = None) -> None:
    """Every rule of the design's section 13 that rows and the provider's journal can tell."""
    broken = violations()
    if simulator is not None:
        broken += jobs_run_twice(simulator)
    assert broken == [], "\n".join(broken)


def violations() -> list[str]:
    """What is wrong in the connected database, a sentence each."""
    return [*map(str, violations_of_audit()), *_money(), *_tasks(), *_attempts()]


def jobs_run_twice(simulator: Any) -> list[str]:
    """Tasks for which the provider ran more than one job, by the provider's own journal."""
    per_task: Counter[UUID] = Counter()
    unmarked = 0
    for job in simulator.jobs():
        if WEBHOOK_KEY.fullmatch(job["marker"] or ""):
            per_task[UUID(hex=job["marker"][:32])] += 1
        else:
            unmarked += 1
    twice = [f"{times} jobs of task {task_id}" for task_id, times in per_task.items() if times > 1]
    blind = Attempt.objects.exclude(provider=WITH_MARKERS).values("task_id").distinct().count()
    if unmarked > blind:
        twice.append(f"{unmarked} jobs without a marker for {blind} tasks that send none")
    return twice


def _money() -> list[str]:
    broken = []
    for account in Account.objects.all():
        mine = Transfer.objects.filter(owner_id=account.pk)
        came = mine.filter(credit=Leg.OWNER).aggregate(sum=Sum("amount_micros"))["sum"] or 0
        went = mine.filter(debit=Leg.OWNER).aggregate(sum=Sum("amount_micros"))["sum"] or 0
        if account.balance_micros != came - went or account.balance_micros < 0:
            broken.append(f"balance {account.balance_micros} of {account.pk} is not {came} − {went}")
    into = Transfer.objects.filter(credit=Leg.CLEARING).aggregate(sum=Sum("amount_micros"))["sum"] or 0
    out_of = Transfer.objects.filter(debit=Leg.CLEARING).aggregate(sum=Sum("amount_micros"))["sum"] or 0
    open_charges = Charge.objects.filter(resolution__isnull=True)
    held = open_charges.aggregate(sum=Sum("amount_micros"))["sum"] or 0
    if into - out_of != held:
        broken.append(f"clearing holds {into - out_of}, and unresolved charges are {held}")
    for charge in Charge.objects.annotate(
        returned=Sum("transfers__amount_micros", filter=Q(transfers__kind__in=[Kind.REFUND, Kind.GOODWILL]))
    ).filter(returned__gt=F("amount_micros")):
        broken.append(f"more was returned than charged for {charge.pk}")
    return broken


def _tasks() -> list[str]:
    broken = []
    for task in VideoTask.objects.select_related("claim__charge__resolution"):
        charge: Charge | None = getattr(task.claim, "charge", None)
        resolution: Resolution | None = getattr(charge, "resolution", None) if charge else None
        outcome = resolution.outcome if resolution else None
        if task.claim.state != ClaimState.LIVE:
            broken.append(f"task {task.pk} of a buried claim")
        if (task.state in FINAL) != (charge is None or outcome is not None):
            broken.append(f"task {task.pk} is {task.state} and its charge is {outcome or 'open'}")
        if task.state == State.COMPLETED and outcome != "settled":
            broken.append(f"task {task.pk} is completed and its charge is {outcome}")
        if task.state == State.FAILED and charge is None and task.error_code != "insufficient_balance":
            broken.append(f"task {task.pk} failed and was never charged")
    buried = Claim.objects.filter(state=ClaimState.BURIED)
    if open_of_buried := Charge.objects.filter(claim__in=buried, resolution__isnull=True).count():
        broken.append(f"{open_of_buried} unresolved charges of buried claims")
    return broken


def _attempts() -> list[str]:
    broken = []
    twice = (
        Attempt.objects.filter(outcome=Outcome.ACCEPTED)
        .values("task_id")
        .annotate(n=Count("id"))
        .filter(n__gt=1)
    )
    broken += [f"{row['n']} accepted attempts of {row['task_id']}" for row in twice]
    for task_id, number in Attempt.objects.filter(number__gt=1).values_list("task_id", "number"):
        earlier = Attempt.objects.filter(task_id=task_id, number__lt=number)
        if earlier.filter(outcome__in=[Outcome.INFLIGHT, Outcome.UNCLEAR]).exists():
            broken.append(f"{task_id} was sent again after an unclear answer")
    for event in TaskEvent.objects.filter(from_state=State.UNKNOWN).exclude(to_state=State.UNKNOWN):
        if not Evidence.objects.filter(task_id=event.task_id).exists():
            broken.append(f"{event.task_id} left unknown without evidence")
    reopened = TaskEvent.objects.filter(from_state__in=FINAL).exclude(to_state=F("from_state"))
    broken += [f"{event.task_id} was reopened" for event in reopened]
    broken += [f"a second job of {orphan.task_id}" for orphan in OrphanJob.objects.all()]
    return broken
