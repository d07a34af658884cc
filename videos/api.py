"""The HTTP API of videos: translate in, one operation, translate out."""

from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import get_language
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authentication import owner_of
from accounts.models import ApiToken
from core import cursors, db
from core.errors import Allowed, Invalid
from core.ids import BATCH_PREFIX, canonical_client_id
from videos import deletion, operations, presentation, queries, schema
from videos.catalogue import ModelSpec, all_models
from videos.errors import IdReused, NotAbandonable, NotCancellable, NotDeletable, NotReceived
from videos.messages import describe_refusal
from videos.operations import Submitted
from videos.prices import prices_by_model
from videos.problems import problem
from videos.queries import MAX_IDS, ListFilter, TaskView
from videos.states import State

log = structlog.get_logger(__name__)

LIST_GROUPS = ("all", "running", "ready", *(state.value for state in State))


class VideosApi(APIView):
    """Answers about state are never cached: 404 and 410 would be by default."""

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        final.headers.setdefault("Cache-Control", "no-store")
        return final


class VideoList(VideosApi):
    @extend_schema(
        operation_id="submit_video",
        request=schema.Submission,
        responses={201: schema.Video, 200: schema.Video, "4XX": schema.Problem, "5XX": schema.Problem},
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Order a video. The same id and body again is the same video, and is not charged again."""
        if not isinstance(request.data, dict):
            raise Invalid(field="request", limit="not_json")
        now = timezone.now()
        token = request.auth if isinstance(request.auth, ApiToken) else None
        owner_id = owner_of(request).pk
        try:
            submitted = operations.submit_video(owner_id=owner_id, fields=request.data, token=token, now=now)
        except IdReused:
            return _reused(request, view_or_404(request, str(request.data["id"])))
        # The line that joins a request's id and its task's.
        log.info("video_ordered", task_id=str(submitted.view.claim.pk), is_new=submitted.is_new)
        return answer_submission(request, submitted)

    @extend_schema(
        operation_id="list_videos",
        parameters=[
            OpenApiParameter("ids", str, description="up to 100 ids, with commas; one entry per id"),
            OpenApiParameter("state", str, enum=LIST_GROUPS),
            OpenApiParameter("model", str),
            OpenApiParameter("q", str, description="words of the prompt"),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses={200: schema.VideoPage, "4XX": schema.Problem},
    )
    def get(self, request: Request) -> Response:
        """Newest first, finished ones included; or, with `ids`, one entry for each id asked for."""
        owner_id, now = owner_of(request).pk, timezone.now()
        if "ids" in request.query_params:
            return Response({"results": _by_ids(owner_id, request.query_params["ids"], now)})
        chosen = ListFilter(
            group=_group(request.query_params.get("state", "")),
            model=_without_nul(request.query_params.get("model", ""))[:64],
            words=_without_nul(request.query_params.get("q", ""))[:200],
        )
        limit = cursors.read_limit(request.query_params.get("limit"))
        before = cursors.decode(request.query_params.get("cursor", ""))
        views = queries.list_views(owner_id=owner_id, chosen=chosen, limit=limit + 1, before=before)
        return Response(page_of(views, limit, now))


def page_of(views: list[TaskView], limit: int, now: Any) -> dict[str, Any]:
    """A page of represented tasks; `views` holds one more than `limit` when there is a next page."""
    shown = views[:limit]
    last = shown[-1].task if len(views) > limit else None
    return {
        "results": [presentation.represent_task(view, now) for view in shown],
        "next_cursor": cursors.encode(last.created_at, last.pk) if last else None,
    }


def answer_submission(request: Request, submitted: Submitted) -> HttpResponseBase:
    """201 for a new task, 200 for a replay, 402 and 410 for what is remembered."""
    view, now = submitted.view, timezone.now()
    if view.task is None:
        return gone(request, view)
    document = presentation.represent_task(view, now)
    if view.task.error_code == "insufficient_balance":
        message = presentation.message_of(view, now)
        members = {"charge": document["charge"], "id": view.claim.client_id, "task": document}
        return problem(request, status=402, message=message, members=members)
    location = {"Location": f"/api/videos/{view.claim.client_id}"}
    if submitted.is_new:
        return Response(document, status=201, headers=location)
    replayed = {"Idempotent-Replayed": "true", **location}
    return Response(document, status=200, headers=replayed)


def gone(request: Request, view: TaskView) -> HttpResponse:
    """410, for ever, with the money as the ledger has it today."""
    message = presentation.message_of(view, timezone.now())
    members = {"charge": presentation.represent_charge(view), "id": view.claim.client_id}
    return problem(request, status=410, message=message, code=presentation.absent_code(view), members=members)


def _reused(request: Request, view: TaskView) -> HttpResponse:
    """422: the id belongs to another request, whose charge is told."""
    members = {
        "charge": presentation.represent_charge(view),
        "id": view.claim.client_id,
        "field": "id",
    }
    return problem(request, status=422, message=describe_refusal("id_reused"), members=members)


def _conflict(request: Request, view: TaskView, code: str) -> HttpResponse:
    """409 about a live task, with its charge and its own message."""
    now = timezone.now()
    document = presentation.represent_task(view, now)
    own = presentation.message_of(view, now)
    if code == "not_cancellable":
        message = describe_refusal(code, task=own)
    elif code == "not_deletable":
        message = describe_refusal(code, currency=settings.BILLING_CURRENCY, amount=view.charged_micros)
    else:
        message = own
    members = {"charge": document["charge"], "id": view.claim.client_id, "task": document}
    return problem(request, status=409, message=message, code=code, members=members)


class VideoDetail(VideosApi):
    @extend_schema(
        operation_id="get_video",
        responses={200: schema.Video, 304: None, 404: schema.Problem, 410: schema.Problem},
    )
    def get(self, request: Request, client_id: str) -> HttpResponseBase:
        """The task as it is now. 404: not received; 410: deleted or abandoned, for ever."""
        view = view_or_404(request, client_id)
        if view.is_buried:
            return gone(request, view)
        # Made into bytes once, for the validator and the answer.
        body = JSONRenderer().render(presentation.represent_task(view, timezone.now()))
        etag = presentation.etag_of(body, get_language() or "")
        if _is_held(etag, request.headers.get("If-None-Match", "")):
            return HttpResponse(status=304, headers={"ETag": etag})
        headers = {"ETag": etag, "Vary": "Accept-Language, Authorization, Cookie"}
        return HttpResponse(body, content_type="application/json", headers=headers)

    @extend_schema(
        operation_id="delete_video",
        responses={204: None, 404: schema.Problem, 409: schema.Problem, 410: schema.Problem},
    )
    def delete(self, request: Request, client_id: str) -> HttpResponseBase:
        """Delete a final task with its result. The id answers 410 from then on; money is not moved."""
        view = view_or_404(request, client_id)
        if view.is_buried:
            return gone(request, view)
        try:
            with db.commit_in_doubt():
                deletion.delete_task(
                    owner_id=owner_of(request).pk, client_id=view.claim.client_id, now=timezone.now()
                )
        except NotDeletable:
            return _conflict(request, view_or_404(request, client_id), "not_deletable")
        return HttpResponse(status=204)


class VideoAbandon(VideosApi):
    @extend_schema(
        operation_id="abandon_video",
        request=None,
        responses={
            200: schema.AbsentVideo,
            400: schema.Problem,
            409: schema.Problem,
            410: schema.Problem,
        },
    )
    def post(self, request: Request, client_id: str) -> HttpResponseBase:
        """If this id has not been seen, never accept it: makes "not charged" true."""
        known = _well_formed(client_id)
        owner_id = owner_of(request).pk
        if known.startswith(BATCH_PREFIX) and not queries.view_of(owner_id=owner_id, client_id=known):
            raise Invalid(field="id", limit="id_reserved")  # a batch will need it
        try:
            view = operations.abandon(owner_id=owner_id, client_id=known, now=timezone.now())
        except NotAbandonable:
            return _conflict(request, view_or_404(request, client_id), "not_abandonable")
        if presentation.absent_code(view) == "deleted":
            return gone(request, view)
        return Response(presentation.represent_absent(known, view))


class VideoCancel(VideosApi):
    @extend_schema(
        operation_id="cancel_video",
        request=None,
        responses={200: schema.Video, 202: schema.Video, 404: schema.Problem, 409: schema.Problem},
    )
    def post(self, request: Request, client_id: str) -> HttpResponseBase:
        """200: cancelled and returned in full; 202: the provider is asked; 409: with the task's message."""
        view = view_or_404(request, client_id)
        if view.is_buried:
            return gone(request, view)
        owner_id = owner_of(request).pk
        try:
            with db.commit_in_doubt():
                done = operations.cancel(
                    owner_id=owner_id, client_id=view.claim.client_id, now=timezone.now()
                )
        except NotCancellable:
            return _conflict(request, view_or_404(request, client_id), "not_cancellable")
        with db.change_committed():
            after = view_or_404(request, client_id)
        if after.is_buried:
            return gone(request, after)
        document = presentation.represent_task(after, timezone.now())
        return Response(document, status=200 if done.is_done else 202)


class ModelList(VideosApi):
    @extend_schema(operation_id="list_models", responses={200: schema.ModelPage})
    def get(self, request: Request) -> Response:
        """What can be ordered, and what it costs today."""
        return Response({"results": represent_models(), "next_cursor": None})


def represent_models(*, with_drills: bool = True) -> list[dict[str, Any]]:
    prices = prices_by_model()
    return [
        _represent_model(spec, prices.get(spec.model, []))
        for spec in all_models()
        if spec.input in operations.ORDERABLE_INPUTS and (with_drills or not spec.drill)
    ]


def _represent_model(spec: ModelSpec, prices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "model": spec.model,
        "title": spec.title,
        "provider": spec.provider,
        "input": spec.input,
        "seconds": list(spec.seconds),
        "resolutions": list(spec.resolutions),
        "aspect_ratios": list(spec.aspect_ratios),
        "audio": spec.audio,
        "default": {
            "seconds": spec.default_seconds,
            "resolution": spec.default_resolution,
            "aspect_ratio": spec.default_aspect_ratio,
            "audio": spec.default_audio,
        },
        "prices": prices,
        "currency": settings.BILLING_CURRENCY,
        "available": bool(prices),
        "usual_seconds": {"low": spec.usual_seconds[0], "high": spec.usual_seconds[1]},
        "charges_on_refusal": spec.charges_on_refusal,
        "max_prompt": spec.max_prompt,
    }


def view_or_404(request: Request, client_id: str) -> TaskView:
    """The owner's view of an id; an unseen, foreign or malformed one is not received. Raises: NotReceived."""
    canonical = canonical_client_id(client_id)
    view = canonical and queries.view_of(owner_id=owner_of(request).pk, client_id=canonical)
    if not view:
        queries.require_whole_memory()
        raise NotReceived
    return view


def _well_formed(client_id: str) -> str:
    canonical = canonical_client_id(client_id)
    if canonical is None:
        raise Invalid(field="id", limit="id_form")
    return canonical


def _by_ids(owner_id: UUID, text: str, now: Any) -> list[dict[str, Any]]:
    asked = [part for part in text.split(",") if part]
    if len(asked) > MAX_IDS:
        raise Invalid(field="ids", limit=Allowed("ids", {"n": MAX_IDS}))
    # Two spellings of one UUID are one id; what is no id at all is told back, cut, and never looked for.
    canonical = {part: canonical_client_id(part) for part in asked}
    named = dict.fromkeys(known or part[:64] for part, known in canonical.items())
    views = queries.views_of(owner_id=owner_id, client_ids=[known for known in canonical.values() if known])
    return [_entry(client_id, views.get(client_id), now) for client_id in named]


def _entry(client_id: str, view: TaskView | None, now: Any) -> dict[str, Any]:
    if view is None or view.task is None:
        return presentation.represent_absent(client_id, view)
    return presentation.represent_task(view, now)


def _is_held(etag: str, if_none_match: str) -> bool:
    """Whether a client's `If-None-Match` covers what it would be sent (RFC 9110 section 13.1.2)."""
    held = [part.strip().removeprefix("W/") for part in if_none_match.split(",")]
    return etag in held or "*" in held


def _group(text: str) -> str:
    if text and text not in LIST_GROUPS:
        raise Invalid(field="state", limit=Allowed("one_of", {"choices": list(LIST_GROUPS)}))
    return text or "all"


def _without_nul(text: str) -> str:
    return text.replace("\x00", "")
