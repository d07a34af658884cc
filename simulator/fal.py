"""fal's wire forms: what a submit must hold, and the bodies of answers. Pure.

Sources: the official `fal-client` 1.0.3 (what it sends and reads), fal's public documentation of the queue,
of webhooks and of the platform API (`requests/by-endpoint`, `billing-events`).
"""

import base64
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from simulator.directives import Setting, number, text
from simulator.faults import Answer, error_answer
from simulator.jobs import Job, Outcome, Phase, Verdict, decide, phase_at, queue_position

MAX_PROMPT = 20_000  # characters; wider than any of the models, so that the caller's own limit is what shows


def json_answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Answer:
    """A JSON answer."""
    return Answer(status, json.dumps(body).encode(), headers=headers or {})


def validation_error(*, field: str, message: str, kind: str, given: Any = None) -> list[dict[str, Any]]:
    """The `detail` of a 422, as fal's models give it."""
    return [{"loc": ["body", field] if field else ["body"], "msg": message, "type": kind, "input": given}]


def check_input(endpoint: str, raw: bytes) -> tuple[dict[str, Any], Answer | None]:
    """The model's input, and the refusal if the model would not take it."""
    try:
        document = json.loads(raw)
    except ValueError:
        detail = validation_error(field="", message="JSON decode error", kind="json_invalid")
        return {}, error_answer(422, detail=detail)
    if not isinstance(document, dict):
        detail = validation_error(field="", message="Input should be an object", kind="model_type")
        return {}, error_answer(422, detail=detail)
    detail = []
    prompt = document.get("prompt")
    if "prompt" not in document:
        detail = validation_error(field="prompt", message="Field required", kind="missing", given=document)
    elif not isinstance(prompt, str):
        message = "Input should be a valid string"
        detail = validation_error(field="prompt", message=message, kind="string_type", given=prompt)
    elif not prompt.strip():
        message = "String should have at least 1 character"
        detail = validation_error(field="prompt", message=message, kind="string_too_short", given=prompt)
    elif len(prompt) > MAX_PROMPT:
        message = f"String should have at most {MAX_PROMPT} characters"
        detail = validation_error(field="prompt", message=message, kind="string_too_long")
    elif endpoint.endswith("image-to-video") and not document.get("image_url"):
        detail = validation_error(field="image_url", message="Field required", kind="missing")
    return document, error_answer(422, detail=detail) if detail else None


def request_address(public_url: str, job: Job) -> str:
    """The address of a request; only owner and app are part of it, never the path below."""
    return f"{public_url}/{job.app}/requests/{job.request_id}"


def video_address(public_url: str, job: Job, now: float) -> str:
    """The address of the video; with `link_fresh` each answer gives a new one with its own end."""
    address = f"{public_url}/files/{job.request_id}/video.mp4"
    if not job.directives.get("link_fresh"):
        return address
    return f"{address}?expires={now + number(job.directives.get('link_seconds'), 3600.0):.3f}"


def accepted(job: Job, public_url: str, now: float) -> Answer:
    """The answer to a submit."""
    address = request_address(public_url, job)
    body = {
        "status": "IN_QUEUE",
        "request_id": job.request_id,
        "gateway_request_id": job.request_id,
        "response_url": address,
        "status_url": f"{address}/status",
        "cancel_url": f"{address}/cancel",
        "queue_position": queue_position(job, now),
    }
    return json_answer(200, body, {"x-fal-request-id": job.request_id})


def status_answer(job: Job, public_url: str, now: float, *, with_logs: bool) -> Answer:
    """The state of a request: 202 until it is over, 200 then. A failure is COMPLETED with an error."""
    phase = phase_at(job, now)
    address = request_address(public_url, job)
    body: dict[str, Any] = {
        "status": _word(job, phase),
        "request_id": job.request_id,
        "response_url": address,
        "status_url": f"{address}/status",
        "cancel_url": f"{address}/cancel",
    }
    if phase is Phase.IN_QUEUE:
        body["queue_position"] = queue_position(job, now)
    else:
        body["logs"] = _logs(job, phase, now) if with_logs else None
    if phase is Phase.IN_PROGRESS and "progress" in job.directives:
        body["progress"] = number(job.directives["progress"], 0.0)
    if phase is Phase.COMPLETED:
        verdict = decide(job, cancelled=job.outcome is Outcome.CANCELLED)
        body["metrics"] = {"inference_time": round(job.run_seconds or 0.0, 3)}
        if verdict.error is not None:
            body |= {"error": verdict.error, "error_type": verdict.error_type}
    code = 200 if phase is Phase.COMPLETED else 202
    return json_answer(code, body, {"x-fal-request-id": job.request_id})


def output_detail(job: Job, verdict: Verdict) -> Any:
    """The `detail` of a job that ended without an output; typed when its content was refused."""
    if verdict.error_type == "content_policy_violation":
        return validation_error(
            field="prompt", message=verdict.error or "", kind="content_policy_violation", given=None
        )
    return verdict.error


def result_answer(job: Job, public_url: str, size: int, *, reads: int, now: float) -> Answer:
    """The result of an ended request: the model's output, or the model's own error. `reads` came before."""
    verdict = decide(job, cancelled=job.outcome is Outcome.CANCELLED)
    headers = {"x-fal-request-id": job.request_id, "x-fal-billable-units": format(verdict.units, "f")}
    if verdict.error is None:
        return json_answer(200, output(job, public_url, size, reads=reads, now=now), headers)
    failure = error_answer(
        verdict.status_code, detail=output_detail(job, verdict), error_type=verdict.error_type
    )
    return Answer(failure.status, failure.body, failure.content_type, {**failure.headers, **headers})


def output(job: Job, public_url: str, size: int, *, reads: int, now: float) -> dict[str, Any]:
    """The output of the model, with the address of the video, or with what stands in for it."""
    video: dict[str, Any] = {
        "url": video_address(public_url, job, now),
        "content_type": "video/mp4",
        "file_name": "video.mp4",
        "file_size": size,
    }
    written = job.directives.get("url")
    told = "" if written is True else text(written)
    if told is not None and reads < number(job.directives.get("url_reads"), float("inf")):
        if told == "list":
            return {"video": []}
        if told == "missing":
            del video["url"]
        else:
            video["url"] = {"empty": "", "null": None}.get(told, told)
    seed = job.input.get("seed")
    return {"video": video} if seed is None else {"video": video, "seed": seed}


def webhook_body(job: Job, public_url: str, size: int, *, now: float, status: str | None = None) -> bytes:
    """The call that tells of the end. `status` overrules what it says (a contradicting call)."""
    verdict = decide(job, cancelled=job.outcome is Outcome.CANCELLED)
    said = status or ("OK" if verdict.error is None else "ERROR")
    body: dict[str, Any] = {
        "request_id": job.request_id,
        "gateway_request_id": job.request_id,
        "status": said,
        "payload": output(job, public_url, size, reads=0, now=now) if said == "OK" else None,
    }
    if said != "OK":
        body["error"] = f"Invalid status code: {verdict.status_code}"
        body["payload"] = {"detail": output_detail(job, verdict)}
    return json.dumps(body).encode()


def looked_up(job: Job, public_url: str, size: int, *, with_payloads: bool, now: float) -> dict[str, Any]:
    """One ended request in `requests/by-endpoint`."""
    verdict = decide(job, cancelled=job.outcome is Outcome.CANCELLED)
    ended_at = job.ended_at or job.received_at
    item: dict[str, Any] = {
        "request_id": job.request_id,
        "endpoint_id": job.endpoint,
        "sent_at": iso(job.received_at),
        "started_at": iso(min(ended_at, job.starts_at or ended_at)),
        "ended_at": iso(ended_at),
        "status_code": verdict.status_code,
        "duration": round(ended_at - job.received_at, 3),
    }
    if with_payloads and job.directives.get("store_io") is not False:
        item["json_input"] = dict(job.input)
        failure = {"detail": output_detail(job, verdict)}
        item["json_output"] = failure if verdict.error else output(job, public_url, size, reads=0, now=now)
    return item


def bill_line(job: Job, *, units: Decimal, price: Decimal) -> dict[str, Any]:
    """One line of `billing-events`."""
    cost = units * price
    return {
        "request_id": job.request_id,
        "endpoint_id": job.endpoint,
        "timestamp": iso(job.ended_at or job.received_at),
        "output_units": float(units),
        "unit_price": float(price),
        "percent_discount": 0,
        "cost_subtotal": float(cost),
        "cost_discount": 0.0,
        "cost_total": float(cost),
        "cost_estimate_nano_usd": int(cost * 1_000_000_000),
    }


def iso(at: float) -> str:
    """A Unix time in the form the platform API writes; milliseconds are kept."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(written: str) -> float:
    """A Unix time out of an ISO 8601 date or time; without a zone it is UTC.

    Raises:
        ValueError: it is neither.
    """
    moment = datetime.fromisoformat(written)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def write_cursor(ended_at: float, row: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([ended_at, row]).encode()).decode()


def read_cursor(written: str) -> tuple[float, int]:
    """Where the next page starts.

    Raises:
        ValueError: not one of ours.
    """
    ended_at, row = json.loads(base64.urlsafe_b64decode(written))
    return float(ended_at), int(row)


def _word(job: Job, phase: Phase) -> Setting:
    told = {
        Phase.IN_QUEUE: "queued_word",
        Phase.IN_PROGRESS: "running_word",
        Phase.COMPLETED: "status_word",
    }[phase]
    return text(job.directives.get(told)) or phase.value


def _logs(job: Job, phase: Phase, now: float) -> list[dict[str, Any]]:
    starts_at = job.starts_at or job.received_at
    lines = [
        (starts_at, "Loading the model"),
        (starts_at + (job.run_seconds or 0.0) / 2, "Half of the frames"),
    ]
    if phase is Phase.COMPLETED:
        lines.append((job.ended_at or now, "Finished"))
    return [
        {"message": message, "timestamp": iso(at), "level": "INFO", "source": "SIMULATOR"}
        for at, message in lines
        if at <= now
    ]
