"""Whether the promises held: what clients were told, what the rows say, and what the provider really ran."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.money import parse_amount
from tests.chaos.clients import Client, End, Video
from tests.chaos.fleet import Fleet
from tests.chaos.orders import NEVER_ENDS

FINAL = ("completed", "failed", "task_deleted", "abandoned")
ID_IN_PROMPT = re.compile(r"video \d+ of ([0-9a-f-]{36})")
READ_AT_ONCE = 100
FETCHED = 5  # results of each client that are fetched whole
# What an interrupted process may say; a traceback of anything else is a defect.
EXPECTED_ERRORS = re.compile(
    r"\b(OperationalError|InterfaceError|AdminShutdown|ConnectionFailure|WorkerLostError|TimeLimitExceeded|"
    r"ConnectionError|ConnectionResetError|ConnectionRefusedError|BrokenPipeError|TimeoutError|"
    r"BusyLoadingError|WorkerShutdown|CannotConnectNow|CrashShutdown|EOFError)\b"
)
TRACEBACK = "Traceback (most recent call last)"
ERROR_LINE = re.compile(r"^(\w[\w.]*(?:Error|Exception|Lost|Exceeded|Shutdown))\b", re.MULTILINE)


@dataclass
class Verdict:
    """What was found. `broken` must be empty; the rest is for the report."""

    broken: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    attempts: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    jobs: int = 0
    charges: int = 0
    alarms: Counter[str] = field(default_factory=Counter)
    tracebacks: Counter[str] = field(default_factory=Counter)


def verify(*, fleet: Fleet, clients: list[Client]) -> Verdict:
    """Ask everybody who knows. Nothing is running wild any more, and every service answers."""
    verdict = Verdict()
    verdict.broken += [sentence for client in clients for sentence in client.broken]
    verdict.broken += _audit(fleet)
    books = json.loads(fleet.python("from tests.chaos.books import main\nmain()"))
    verdict.attempts = books["attempts"]
    verdict.broken += books["violations"]
    for client in clients:
        for video in client.videos.values():
            claim = books["claims"].get(video.id)
            is_waiting = video.end is None and claim is not None and video.order.wish == NEVER_ENDS
            verdict.waiting += is_waiting
            verdict.ends[
                "waits for a person" if is_waiting else video.end.value if video.end else "open"
            ] += 1
            verdict.broken += _broken_promises(video, claim, is_waiting=is_waiting)
        verdict.broken += [*_read_back(client), *_fetch_some(client, fleet)]
    verdict.broken += _money(books)
    verdict.charges = sum(claim["charged"] > 0 for claim in books["claims"].values())
    verdict.broken += _provider(fleet, books["claims"], verdict)
    verdict.broken += _logs(fleet.data_dir, verdict)
    return verdict


def _audit(fleet: Fleet) -> list[str]:
    try:
        fleet.manage("audit")
    except RuntimeError as failure:
        return [f"audit: {failure}"]
    return []


def _broken_promises(video: Video, claim: dict[str, Any] | None, *, is_waiting: bool) -> Iterator[str]:
    """What a client was told of an id, against the rows."""
    if video.created > 1:
        yield f"{video.id} was answered 201 {video.created} times"
    if claim is None:
        yield f"{video.id} is lost: sent {video.posts} times, and in no row"
        return
    if is_waiting:
        if claim["state"] != "processing":
            yield f"{video.id} should wait for a person and is {claim['state']}"
        return
    if video.end is None or claim["state"] not in FINAL or not claim["is_resolved"]:
        yield f"{video.id} has not ended: {claim}, and its client knows {video.told}"
        return
    if claim["state"].removeprefix("task_") != video.told["state"]:
        yield f"{video.id} is {claim['state']}, and its client was told {video.told}"
    charge = video.told["charge"]
    told = (parse_amount(charge["amount"]), parse_amount(charge["refunded"]))
    if told != (claim["charged"], claim["returned"]):
        yield f"the money of {video.id} is {claim}, and its client was told {charge}"
    kept = claim["charged"] - claim["returned"]
    if (kept > 0) != (video.end in (End.COMPLETED, End.DELETED)):
        yield f"{video.id} ended {video.end.value}, and {kept} of its charge is kept"


def _read_back(client: Client) -> Iterator[str]:
    """Every id is still known and tells the same, and what waits for a person says so."""
    videos = list(client.videos.values())
    for first in range(0, len(videos), READ_AT_ONCE):
        some = {video.id: video for video in videos[first : first + READ_AT_ONCE]}
        answer = client.call("GET", f"/api/videos?ids={','.join(some)}")
        if answer.status != 200:
            yield f"reading back was answered {answer.status}"
            continue
        for entry in answer.document["results"]:
            video, now = some[entry["id"]], entry.get("state") or entry["code"]
            if video.end is not None and (now, entry["charge"]) != (
                video.told["state"],
                video.told["charge"],
            ):
                yield f"{video.id} reads {now} {entry['charge']}, and was {video.told}"
            if video.end is End.COMPLETED and not entry["result"]:
                yield f"{video.id} is completed and has no result"
            if video.end is None and entry["message"]["code"] != "stuck":
                yield f"{video.id} is open and does not say that it waits for a person"


def _fetch_some(client: Client, fleet: Fleet) -> Iterator[str]:
    completed = [video for video in client.videos.values() if video.end is End.COMPLETED]
    for video in completed[:FETCHED]:
        document = client.call("GET", f"/api/videos/{video.id}").document
        reply = fleet.request("GET", document["result"]["url"], headers=client.sign)
        if reply.status != 200 or not reply.body:
            yield f"the result of {video.id} was answered {reply.status} with {len(reply.body)} bytes"


def _money(books: dict[str, Any]) -> Iterator[str]:
    """Balance = topped up − charged + returned, of each owner."""
    spent: Counter[str] = Counter()
    for claim in books["claims"].values():
        spent[claim["owner"]] += claim["charged"] - claim["returned"]
    for name, owner in books["owners"].items():
        if owner["balance"] != owner["topped_up"] - spent[name]:
            yield f"{name} has {owner['balance']}, topped up {owner['topped_up']}, spent {spent[name]}"


def _provider(fleet: Fleet, claims: dict[str, dict[str, Any]], verdict: Verdict) -> Iterator[str]:
    """The provider's own journal: one job a task at most, and none that nobody was charged for."""
    jobs = fleet.provider.request("GET", "/_sim/jobs?limit=100000").json
    verdict.jobs = len(jobs)
    of = Counter(match[1] if (match := ID_IN_PROMPT.search(job["input"]["prompt"])) else "" for job in jobs)
    for order_id, times in of.items():
        if times > 1:
            yield f"the provider ran {times} jobs for {order_id}"
        if claims.get(order_id, {}).get("charged", 0) == 0:
            yield f"the provider ran a job for {order_id}, which nobody was charged for"
    for order_id, claim in claims.items():
        if claim["charged"] > claim["returned"] and of[order_id] != 1:
            yield f"{order_id} was paid for, and the provider ran {of[order_id]} jobs"


def _kind_of_line(event: str) -> str:
    """An event without its ids, pids and addresses."""
    first = re.split(r"\[|\(|: Error| redis:", event.splitlines()[0] if event else "")[0]
    return re.sub(r"/[0-9a-f-]{36}", "/ID", first)[:60].strip()


def _logs(folder: Path, verdict: Verdict) -> Iterator[str]:
    """Lines that want a person, and tracebacks. Those of cut connections are what the faults are for."""
    for path in sorted(folder.glob("*.log")):
        for line in path.read_text(errors="replace").splitlines():
            document = _parsed(line)
            event, trace = str(document.get("event", "")), str(document.get("exception", ""))
            if document.get("level") in ("error", "critical"):
                verdict.alarms[_kind_of_line(event)] += 1
            if event.startswith("Internal Server Error"):
                yield f"{path.name}: {event}"
            if not trace:
                continue
            raised = ERROR_LINE.findall(trace) or ["unnamed"]
            verdict.tracebacks[f"{path.stem}: {raised[-1]}"] += 1
            if not EXPECTED_ERRORS.search(trace):
                yield f"{path.name} has a traceback: {trace[-300:]}"


def _parsed(line: str) -> dict[str, Any]:
    """A line of ours. What is not JSON comes from elsewhere, or a killed process left it torn."""
    if TRACEBACK in line and not line.startswith("{"):
        return {"event": "a torn line", "level": "error", "exception": line}
    try:
        document = json.loads(line)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
