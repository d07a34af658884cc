"""Strikes an operation at every point: a task each, then one recovery, then each task's end is judged."""

import json
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from signal import SIGKILL
from types import TracebackType
from typing import Any, Self

from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import operations as accounts
from billing.models import Charge
from files.models import StoredFile
from tests import makers
from tests.concurrency.processes import environment_of_this_test
from tests.crash import rules
from tests.crash.effects import FAULTS, KILL, LOSE, SLEEP, Fault
from tests.crash.rules import End
from tests.crash.steps import REQUESTS
from tests.crash.trace import Trace
from tests.invariants_check import jobs_run_twice, violations
from tests.simulator_process import SimulatorProcess
from videos.engine import dispatch, polling, results, unknowns
from videos.models import Attempt, VideoTask
from videos.queries import view_of

ROOT = Path(__file__).resolve().parents[2]
QUIET = "webhook_none"  # nobody listens for call-backs here
LATER = timedelta(days=30)  # nothing is due by itself while the points are fired
ROUNDS = 6  # of all workers; a task that waits takes one more round for each step


class ForkServer:
    """The client's side of `fork_server`: one order, one trace."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.fork_server"],
            cwd=ROOT,
            env=environment_of_this_test(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read() == {"ready": True}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def run(
        self,
        step: str,
        arguments: dict[str, Any],
        *,
        fault: Fault | None,
        bug: str | None = None,
        while_asleep: Callable[[], None] = lambda: None,
    ) -> Trace:
        """Run a step in a child; `while_asleep` is done when and while it sleeps."""
        order = {"step": step, "arguments": arguments, "bug": bug}
        self._write(order | {"fault": vars(fault) if fault else None})
        reply = self._read()
        if "sleeps" in reply:
            while_asleep()
            self._write({"go": "on"})
            reply = self._read()
        return Trace.read(reply)

    def _write(self, document: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the fork server ended with {self._process.wait(10)}"
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What is struck: `step` of steps.py, on a task that `prepare` has brought so far."""

    name: str
    step: str
    directives: str = ""
    model: str = makers.MODEL
    prepare: Callable[[list[str]], None] = lambda ids: None
    is_ordered: bool = True  # the task exists before the operation


@dataclass
class Case:
    """One point: its own owner, its own task."""

    owner: makers.Owner
    document: dict[str, Any]
    fault: Fault | None = None  # of the last run
    runs: list[Trace] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def arguments(self) -> dict[str, Any]:
        return {"key": self.owner.key, "document": self.document}


def run_dispatch(ids: list[str]) -> None:
    makers.make_due()
    dispatch.dispatch_due()


def run_to_storing(ids: list[str]) -> None:
    run_dispatch(ids)
    makers.make_due()
    polling.poll_due()


def run_to_the_end(ids: list[str]) -> None:
    run_to_storing(ids)
    makers.make_due()
    results.store_due()


def leave_overdue(ids: list[str]) -> None:
    run_dispatch(ids)
    makers.make_due()
    unknowns.check_unknown_due()
    makers.age(ids, first_unclear_at=timedelta(hours=30))


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation(name="submit", step="submit", is_ordered=False),
        Operation(name="abandon", step="abandon", is_ordered=False),
        Operation(name="dispatch fal", step="dispatch"),
        Operation(name="dispatch blind", step="dispatch", model=makers.BLIND_MODEL),
        Operation(name="dispatch lost", step="dispatch", directives="drop_after_accept"),
        Operation(name="refuse", step="dispatch", directives="refuse=422"),
        Operation(name="poll", step="poll", directives="status_502=1", prepare=run_dispatch),
        Operation(name="poll done", step="poll", prepare=run_dispatch),
        Operation(name="store", step="store", prepare=run_to_storing),
        Operation(name="complete", step="complete", directives="units=4", prepare=run_to_storing),
        Operation(name="fail", step="poll", directives="fail='no luck'", prepare=run_dispatch),
        Operation(name="cancel", step="cancel"),
        Operation(name="delete", step="delete", prepare=run_to_the_end),
        Operation(
            name="give up",
            step="unknown",
            directives="drop_after_accept",
            model=makers.BLIND_MODEL,
            prepare=leave_overdue,
        ),
    )
}


def strike_everywhere(
    operation: Operation,
    *,
    server: ForkServer,
    simulator: SimulatorProcess,
    kinds: Sequence[str] = FAULTS,
    bug: str | None = None,
) -> list[Case]:
    """Every point of an operation, the recovery, and each case with what is wrong about it in `broken`."""
    first, counted = prepare(operation, 2)
    for case in (first, counted):  # the first also makes the folders that later ones find
        fire(operation, case, server=server, bug=bug)
    faults = points(operation, counted.runs[-1], kinds)
    cases = prepare(operation, len(faults))
    for case, fault in zip(cases, faults, strict=True):
        case.fault = fault
        fire(operation, case, server=server, bug=bug)
    cases = [first, counted, *cases]
    recover(operation, cases)
    judge(operation, cases, simulator)
    return cases


def points(operation: Operation, trace: Trace, kinds: Sequence[str]) -> list[Fault]:
    """Requests have no lease to sleep through; everything else can be struck by everything."""
    is_request = operation.step in REQUESTS
    possible = [
        kind
        for kind in kinds
        if not (kind == SLEEP and is_request) and not (kind == LOSE and connection.vendor == "sqlite")
    ]
    return trace.points(possible)


def prepare(operation: Operation, number: int) -> list[Case]:
    """Tasks of their own, brought to where the operation begins, and put away."""
    cases: list[Case] = []
    directives = "; ".join(filter(None, [QUIET, operation.directives]))
    for owner in owners(number):
        client_id = makers.new_client_id()
        document = makers.order(
            id=client_id, model=operation.model, prompt=f"{client_id} [sim: {directives}]"
        )
        cases.append(Case(owner=owner, document=document))
        if operation.is_ordered:
            makers.submit(owner, **document)
    operation.prepare([case.id for case in cases])
    put_away()
    return cases


def owners(number: int) -> list[makers.Owner]:
    """Owners with money; the prices are looked after once, and not for each of hundreds."""
    made = [makers.make_owner()] if number else []
    for _ in range(number - len(made)):
        user = accounts.create_user(username=f"owner-{uuid.uuid4().hex[:12]}", password="correct horse")
        makers.top_up(user, "100")
        key = accounts.create_token(user=user, name="tests", now=timezone.now())
        api = Client(headers={"authorization": f"Token {key}"})
        made.append(makers.Owner(user=user, key=key, api=api))
    return made


def put_away() -> None:
    """Nothing is due: a worker finds only what the next point makes due."""
    VideoTask.objects.filter(next_check_at__isnull=False).update(next_check_at=timezone.now() + LATER)


def make_due(case: Case) -> None:
    """Let the time of one task's next look come, its lease over if it has one."""
    past = timezone.now() - timedelta(seconds=1)
    VideoTask.objects.filter(client_id=case.id, next_check_at__isnull=False).update(next_check_at=past)
    VideoTask.objects.filter(client_id=case.id, lease_until__isnull=False).update(lease_until=past)


def fire(
    operation: Operation, case: Case, *, server: ForkServer, bug: str | None = None, step: str | None = None
) -> None:
    """Strike one case at its point, and judge what is there right afterwards.

    `step`: another than the operation's own, for what comes after a first strike.
    """

    left: list[Any] = []  # the task's row as the others left it to the sleeper

    def others_take_over() -> None:
        make_due(case)
        makers.work_once()
        left.append(row_of(case))

    make_due(case)
    case.runs.append(
        server.run(
            step or operation.step, case.arguments, fault=case.fault, bug=bug, while_asleep=others_take_over
        )
    )
    # A late answer to an order is evidence, and may still start its task. Nothing else is anyone's to change.
    if left and operation.step != "dispatch" and row_of(case) != left[0]:
        case.broken.append("a stale lease changed the task")
    put_away()
    case.broken += wrong_right_after(operation, case)


def row_of(case: Case) -> dict[str, Any] | None:
    row = VideoTask.objects.filter(client_id=case.id).values().first()
    return dict(row) if row is not None else None


def wrong_right_after(operation: Operation, case: Case) -> list[str]:
    """Whole or not at all, and no untrue word about it."""
    last, fault = case.runs[-1], case.fault
    broken = last.broken_order() + rules.lies(operation.name, case.runs)
    if last.was_killed != (fault is not None and fault.kind == KILL) or last.status not in (0, -SIGKILL):
        broken.append(f"the process ended with {last.status}")
    if operation.step == "dispatch" and rules.lost_an_answer(last):
        broken.append("an answer was received and is not on record")
    if fault is not None and fault.kind == SLEEP:
        return broken + (["a sender that slept through its lease sent"] if last.sent_asleep(fault) else [])
    done = rules.was_done(operation.name, case.runs)
    if done is not None and done != is_done(operation, case):
        broken.append(f"the change {'was' if done else 'was not'} committed, and the rows say otherwise")
    return broken


def is_done(operation: Operation, case: Case) -> bool:
    view = view_of(owner_id=case.owner.id, client_id=case.id)
    if operation.name in ("submit", "abandon"):
        return view is not None
    assert view is not None
    if operation.name == "delete":
        return view.is_buried
    return view.task is not None and view.task.state in ("completed", "failed")


def recover(operation: Operation, cases: list[Case]) -> None:
    """What clients and the schedule do afterwards; nothing is repaired by hand."""
    cases[0].broken += [f"before the recovery: {rule}" for rule in violations()]
    for case in cases:
        if operation.step in REQUESTS:
            _ask_again(operation, case)
    makers.let_leases_run_out()
    _let_everybody_work(cases, rounds=ROUNDS)
    unknown = list(VideoTask.objects.filter(state="unknown").values_list("client_id", flat=True))
    makers.age(unknown, first_unclear_at=timedelta(hours=30))
    _let_everybody_work(cases, rounds=2 if unknown else 0)


def _let_everybody_work(cases: list[Case], *, rounds: int) -> None:
    """Rounds of the schedule. A worker that raises is a violation, and the schedule goes on as it would."""
    for _ in range(rounds):
        makers.make_due()
        try:
            makers.work_once()
        except Exception as error:
            cases[0].broken.append(f"a worker of the recovery raised {type(error).__name__}: {error}")


def _ask_again(operation: Operation, case: Case) -> None:
    """The same request once more, as a client does that had no answer."""
    done = bool(rules.was_done(operation.name, case.runs))
    method, path = REQUESTS[operation.step]
    body = json.dumps(case.document) if operation.step == "submit" else "{}"
    answer: Any = case.owner.api.generic(
        method, path.format(id=case.id), body, content_type="application/json"
    )
    expected = rules.SAID_AGAIN[operation.name][done]
    if answer.status_code != expected:
        case.broken.append(f"asked again: {answer.status_code} instead of {expected}")


def judge(operation: Operation, cases: list[Case], simulator: SimulatorProcess) -> None:
    """Each task's end, jobs, attempts, charge and file, against what its own course allows."""
    jobs = Counter(str(job["input"]["prompt"]).split(" ", 1)[0] for job in simulator.jobs())
    for case in cases:
        end = end_of(case, jobs[case.id])
        allowed = (
            ends_of_a_sleeper(operation, jobs[case.id])
            if _slept(case)
            else rules.allowed_ends(operation.name, case.runs, jobs[case.id])
        )
        if end not in allowed:
            case.broken.append(f"ended as {end}, allowed are {sorted(map(str, allowed))}")
        case.broken += wrong_in_the_end(operation, case, end)
    cases[0].broken += violations() + jobs_run_twice(simulator)


def wrong_in_the_end(operation: Operation, case: Case, end: End) -> list[str]:
    """One charge, one attempt, a file for a video and none for nothing, and "gone" for ever."""
    broken = []
    charged = Charge.objects.filter(owner_id=case.owner.id).count()
    if charged != (operation.name != "abandon"):
        broken.append(f"charged {charged} times")
    attempts = Attempt.objects.filter(owner_id=case.owner.id).count()
    if operation.step == "dispatch" and attempts != 1 and not _slept(case):
        broken.append(f"sent {attempts} times")
    files = StoredFile.objects.filter(owner_id=case.owner.id).count()
    if files != (end.state == "completed"):
        broken.append(f"{files} files of a task that is {end.state}")
    if end.state == "gone" and (status := makers.post(case.owner, case.document).status_code) != 410:
        broken.append(f"ordered again after it was gone: {status}")
    return broken


def _slept(case: Case) -> bool:
    return case.fault is not None and case.fault.kind == SLEEP


def ends_of_a_sleeper(operation: Operation, jobs: int) -> set[End]:
    """Others took over while it slept, so its own course says nothing; it must only do no harm."""
    return {
        "fail": {End("failed", "provider_failed", 1)},
        "give up": {End("failed", "time_limit", 1)},
        "refuse": {End("failed", "input_invalid", 0), End("failed", "time_limit", 0)},
    }.get(operation.name, {rules.COMPLETED, End("failed", "time_limit", jobs)})


def end_of(case: Case, jobs: int) -> End:
    view = view_of(owner_id=case.owner.id, client_id=case.id)
    if view is None:
        return End("unseen", None, jobs)
    if view.task is None:
        reason = "abandoned" if view.claim.reason == "abandoned" else "deleted"
        return End("gone", reason, jobs)
    return End(view.task.state, view.task.error_code or None, jobs)


def shown(cases: Sequence[Case]) -> str:
    """Every violation with the course that led to it."""
    return "\n\n".join(
        "\n".join(
            [f"{case.fault or 'no fault'}: {'; '.join(case.broken)}", *(run.shown() for run in case.runs)]
        )
        for case in cases
        if case.broken
    )
