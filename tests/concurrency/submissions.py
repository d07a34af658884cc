"""Steps of a task's life that the tests take one by one, each through the product's own operations."""

import json
import time
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils import timezone

from core import db
from core.http import Deadline, HttpResponse, send_once
from core.ids import new_id, webhook_key
from simulator.signing import load_signer
from simulator.webhooks import signed_headers
from tests import makers
from tests.concurrency.racing import Held, body_of
from tests.simulator_process import SimulatorProcess
from videos import operations
from videos.engine import dispatch
from videos.engine.dispatch import Sending
from videos.engine.leases import Lease, take_due
from videos.engine.verdicts import Answer
from videos.models import VideoTask
from videos.operations import Submitted
from videos.providers.registry import get_provider
from videos.requests import read_request


def submit(owner: makers.Owner, client_id: str, **fields: Any) -> Submitted:
    document = makers.order(id=client_id, **fields)
    return operations.submit_video(owner_id=owner.id, fields=document, token=None, now=timezone.now())


def abandon(owner: makers.Owner, client_id: str) -> Any:
    return operations.abandon(owner_id=owner.id, client_id=client_id, now=timezone.now())


def cancel(owner: makers.Owner, client_id: str) -> operations.Cancelled:
    return operations.cancel(owner_id=owner.id, client_id=client_id, now=timezone.now())


def submit_many(owner: makers.Owner, number: int, **fields: Any) -> list[str]:
    return [makers.submit(owner, **fields) for _ in range(number)]


def states_of(owner: makers.Owner, ids: list[str]) -> list[str]:
    return [makers.task_of(owner, client_id).state for client_id in ids]


def accept_arguments(owner: makers.Owner, client_id: str) -> dict[str, Any]:
    """What `submit_video` gives to its transaction, once its look-up has seen nothing."""
    request = read_request(makers.order(id=client_id))
    return {
        "task_id": new_id(),
        "owner_id": owner.id,
        "request": request,
        "offer": operations._judge(request, timezone.now()),
        "token": None,
        "now": timezone.now(),
    }


def held_submit(owner: makers.Owner, client_id: str) -> Held:
    """A submission that has done everything but its COMMIT."""
    arguments = accept_arguments(owner, client_id)
    return Held(lambda: body_of(operations._accept)(**arguments))


def lease_of(work: str, client_id: str) -> tuple[VideoTask, Lease]:
    """Take one task for a kind of work, whoever holds it; its earlier holder has a stale lease then."""
    makers.let_leases_run_out()
    makers.make_due()
    provider = VideoTask.objects.get(client_id=client_id).provider
    taken = take_due(work=work, provider=provider, limit=1000)
    return next((task, lease) for task, lease in taken if task.client_id == client_id)


def begin_sending(client_id: str) -> Sending:
    """The attempt of a task that waits to be sent, committed, with nothing sent yet."""
    task, lease = lease_of("dispatch", client_id)
    sending = dispatch.begin_attempt(
        lease=lease, provider=get_provider(task.provider), deadline=Deadline(30), now=db.now()
    )
    assert sending is not None
    return sending


def send(sending: Sending) -> tuple[Answer, HttpResponse]:
    """The attempt's one POST; its answer is in hand and not recorded."""
    response = async_to_sync(send_once)(
        sending.submission.request,
        deadline=Deadline(30),
        connect_seconds=settings.SUBMIT_CONNECT_SECONDS,
        read_seconds=settings.SUBMIT_READ_SECONDS,
    )
    return sending.provider.read_submit(response), response


def call_back(owner: makers.Owner, simulator: SimulatorProcess, client_id: str, word: str = "OK") -> Any:
    """One signed call-back about a task's job, through the real door."""
    task_id = makers.view(owner, client_id).claim.pk
    (job,) = [job for job in simulator.jobs() if job["marker"] == webhook_key(task_id)]
    body = json.dumps({"request_id": job["request_id"], "status": word, "payload": None}).encode()
    folder = next(simulator.data_dir.rglob("webhook_key.pem")).parent
    headers = signed_headers(
        load_signer(folder), request_id=job["request_id"], body=body, options={}, now=time.time()
    )
    del headers["Content-Type"]
    return owner.api.post(
        f"/hooks/fal/{webhook_key(task_id)}", body, content_type="application/json", headers=headers
    )
