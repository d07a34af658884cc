"""The oracle and the remote control: what really happened, and what shall go wrong. No provider has this."""

import json
import sqlite3
from typing import Any

from aiohttp import web

from simulator.answers import respond
from simulator.fal import json_answer
from simulator.faults import InvalidRule
from simulator.journal import reset, summary
from simulator.state import SIMULATOR, refusal

PAGE = 1_000
MOST = 100_000


def add_routes(app: web.Application) -> None:
    app.router.add_get("/_sim/healthz", healthz)
    app.router.add_get("/_sim/jobs", list_jobs)
    app.router.add_get("/_sim/jobs/count", count_jobs)
    app.router.add_get("/_sim/posts", list_posts)
    app.router.add_get("/_sim/posts/count", count_posts)
    app.router.add_get("/_sim/deliveries", list_deliveries)
    app.router.add_get("/_sim/summary", read_summary)
    app.router.add_post("/_sim/reset", reset_all)
    app.router.add_get("/_sim/faults", list_faults)
    app.router.add_post("/_sim/faults", add_fault)
    app.router.add_delete("/_sim/faults", clear_faults)


async def healthz(request: web.Request) -> web.StreamResponse:
    return _json({"status": "ok"})


async def list_jobs(request: web.Request) -> web.StreamResponse:
    """Jobs taken, oldest first. `marker` finds it as the marker, or anywhere in input or webhook address."""
    where, values = _job_filter(request)
    statement = f"SELECT * FROM jobs {where} ORDER BY row LIMIT ?"
    rows = _rows(request, statement, (*values, _limit(request)))
    return _json([_shown(row) for row in rows])


async def count_jobs(request: web.Request) -> web.StreamResponse:
    where, values = _job_filter(request)
    return _json({"count": _rows(request, f"SELECT count(*) FROM jobs {where}", values)[0][0]})


async def list_posts(request: web.Request) -> web.StreamResponse:
    """Every POST received, oldest first, with what became of it."""
    return _json(
        [dict(row) for row in _rows(request, "SELECT * FROM posts ORDER BY row LIMIT ?", (_limit(request),))]
    )


async def count_posts(request: web.Request) -> web.StreamResponse:
    return _json({"count": _rows(request, "SELECT count(*) FROM posts", ())[0][0]})


async def list_deliveries(request: web.Request) -> web.StreamResponse:
    """Webhook calls: how often tried, the last status, and when it was over."""
    statement = (
        "SELECT row, request_id, url, due_at, attempts, last_status, ended_at FROM deliveries"
        " ORDER BY row LIMIT ?"
    )
    return _json([dict(row) for row in _rows(request, statement, (_limit(request),))])


async def read_summary(request: web.Request) -> web.StreamResponse:
    return _json(summary(request.app[SIMULATOR].journal.read))


async def reset_all(request: web.Request) -> web.StreamResponse:
    """Forgets every job, POST, call and fault."""
    simulator = request.app[SIMULATOR]
    await simulator.journal.run(reset)
    simulator.rulebook.forget()
    return _json({"status": "ok"})


async def list_faults(request: web.Request) -> web.StreamResponse:
    return _json(request.app[SIMULATOR].rulebook.listed())


async def add_fault(request: web.Request) -> web.StreamResponse:
    """Adds one scripted fault, or a list of them in that order."""
    try:
        document = json.loads(await request.read())
        rulebook = request.app[SIMULATOR].rulebook
        rules = [await rulebook.add(one) for one in (document if isinstance(document, list) else [document])]
    except (InvalidRule, ValueError) as error:
        return respond(refusal(400, str(error)))
    return _json({"ids": [rule.rule_id for rule in rules]}, status=201)


async def clear_faults(request: web.Request) -> web.StreamResponse:
    """Removes the scripted fault `id`, or all."""
    written = request.query.get("id")
    if written is not None and not written.isdigit():
        return respond(refusal(400, "id is a whole number"))
    rule_id = None if written is None else int(written)
    return _json({"removed": await request.app[SIMULATOR].rulebook.clear(rule_id)})


def _json(body: Any, *, status: int = 200) -> web.StreamResponse:
    return respond(json_answer(status, body, {"Cache-Control": "no-store"}))


def _rows(request: web.Request, statement: str, values: tuple[Any, ...]) -> list[sqlite3.Row]:
    return request.app[SIMULATOR].journal.read.execute(statement, values).fetchall()


def _limit(request: web.Request) -> int:
    written = request.query.get("limit", "")
    return min(int(written), MOST) if written.isdigit() else PAGE


def _job_filter(request: web.Request) -> tuple[str, tuple[Any, ...]]:
    conditions, values = [], []
    if (marker := request.query.get("marker")) is not None:
        conditions.append("(marker = ? OR instr(input, ?) OR instr(coalesce(webhook_url, ''), ?))")
        values += [marker, json.dumps(marker)[1:-1], marker]
    if (endpoint := request.query.get("endpoint")) is not None:
        conditions.append("endpoint = ?")
        values.append(endpoint)
    return f"WHERE {' AND '.join(conditions)}" if conditions else "", tuple(values)


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    shown = dict(row)
    del shown["row"], shown["app"]
    for name in ("input", "directives", "reads"):
        shown[name] = json.loads(shown[name])
    shown["billed"] = bool(shown["billed"])
    return shown
