"""The operations that are struck, as a process of its own runs them: uncounted preparation, then the rest."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.test import Client

from core.http import ReadClient
from tests import makers
from videos.engine import dispatch, polling, results, unknowns
from videos.engine.leases import take_due
from videos.providers.registry import get_provider

Step = Callable[[], Any]


def step_of(name: str, arguments: dict[str, Any]) -> Step:
    """What is counted of an operation; its preparation is done when this returns."""
    if name in REQUESTS:
        return partial(_request, REQUESTS[name], **arguments)
    if name == "complete":
        return _complete()
    return WORK[name]


REQUESTS = {
    "submit": ("POST", "/api/videos"),
    "abandon": ("POST", "/api/videos/{id}/abandon"),
    "cancel": ("POST", "/api/videos/{id}/cancel"),
    "delete": ("DELETE", "/api/videos/{id}"),
}
WORK: dict[str, Step] = {
    "dispatch": dispatch.dispatch_due,
    "poll": polling.poll_due,
    "store": results.store_due,
    "unknown": unknowns.check_unknown_due,
    "work": makers.work_once,  # everything, as the schedule does
}


def _request(route: tuple[str, str], *, key: str, document: dict[str, Any]) -> dict[str, Any]:
    """One request through the API, with everything that it writes and reads on the way."""
    method, path = route
    client = Client(
        headers={"authorization": f"Token {key}"}, raise_request_exception=False, SERVER_NAME="localhost"
    )
    body = document if path == "/api/videos" else {}
    answer: Any = client.generic(
        method, path.format(id=document["id"]), json.dumps(body), content_type="application/json"
    )
    told = answer.json() if answer.content else {}
    return {"status": answer.status_code, "code": told.get("code")}


def _complete() -> Step:
    """The end of a download: the video is in our storage, and everything is still to be told."""
    [item] = polling.with_jobs(take_due(work="store", provider="fal", limit=1))
    provider = get_provider("fal")

    async def fetch() -> results.Outcome:
        async with ReadClient() as client:
            return await results.fetch(item=item, provider=provider, client=client)

    outcome = async_to_sync(fetch)()
    assert isinstance(outcome, results.Fetched), outcome
    return partial(results.record_outcome, item=item, outcome=outcome, provider=provider)
