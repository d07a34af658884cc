"""The HTTP API of an owner's cloud space. Deleting a result is an operation of videos: files knows no
tasks.
"""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import owner_of
from core import cursors, db
from files import content, queries
from files.models import StoredFile
from tombstones.models import Claim
from videos import deletion, schema
from videos.api import VideosApi
from videos.errors import NotDeletable
from videos.messages import describe_refusal
from videos.problems import problem


class FileList(VideosApi):
    @extend_schema(
        operation_id="list_files",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses={200: schema.FilePage},
    )
    def get(self, request: Request) -> Response:
        """The owner's files, newest first."""
        limit = cursors.read_limit(request.query_params.get("limit"))
        before = cursors.decode(request.query_params.get("cursor", ""))
        files = queries.list_files(owner_id=owner_of(request).pk, limit=limit + 1, before=before)
        shown = files[:limit]
        last = shown[-1] if len(files) > limit else None
        ids = _client_ids(shown)
        return Response(
            {
                "results": [represent_file(file, ids) for file in shown],
                "next_cursor": cursors.encode(last.created_at, last.pk) if last else None,
            }
        )


class FileDetail(VideosApi):
    @extend_schema(
        operation_id="delete_file", responses={204: None, 404: schema.Problem, 409: schema.Problem}
    )
    def delete(self, request: Request, file_id: UUID) -> HttpResponseBase:
        """Delete a result and with it its video. The video's id answers 410 from then on."""
        owner_id = owner_of(request).pk
        try:
            with db.commit_in_doubt():
                found = deletion.delete_result(owner_id=owner_id, file_id=file_id, now=timezone.now())
        except NotDeletable:
            return problem(request, status=409, message=describe_refusal("file_in_use", n=1))
        if not found:
            raise NotFound
        return HttpResponse(status=204)


class AnyAccept(DefaultContentNegotiation):
    """The stored bytes have one type, whatever `Accept` prefers; problems are always problem documents."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class FileContent(VideosApi):
    content_negotiation_class = AnyAccept

    @extend_schema(operation_id="get_file_content", responses={(200, "video/mp4"): bytes})
    def get(self, request: Request, file_id: UUID) -> HttpResponseBase:
        """The bytes, with Range. `?download` asks the browser to save them."""
        file = queries.file_of(owner_id=owner_of(request).pk, file_id=file_id)
        if file is None:
            raise NotFound
        return content.serve(request._request, file)


def _client_ids(files: list[StoredFile]) -> dict[UUID, str]:
    claims = Claim.objects.filter(pk__in=[file.task_id for file in files if file.task_id])
    return dict(claims.values_list("pk", "client_id"))


def represent_file(file: StoredFile, client_ids: dict[UUID, str]) -> dict[str, Any]:
    return {
        "id": str(file.pk),
        "name": file.name,
        "kind": file.kind,
        "content_type": file.content_type,
        "size": file.size_bytes,
        "sha256": file.sha256,
        "task": client_ids.get(file.task_id) if file.task_id else None,
        "created_at": file.created_at.isoformat().replace("+00:00", "Z"),
    }
