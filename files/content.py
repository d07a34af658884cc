"""Serving stored bytes, with byte ranges, so that players can seek."""

import re
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import quote

from django.core.files.storage import default_storage
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from files.models import StoredFile

CHUNK_BYTES = 256 * 1024
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def serve(request: HttpRequest, file: StoredFile) -> HttpResponseBase:
    """The file's bytes, or the one range asked for (RFC 9110 section 14)."""
    etag = f'"{file.sha256}"'
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f"{_disposition(request)}; filename*=UTF-8''{quote(file.name)}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers=headers)
    first, last = 0, file.size_bytes - 1
    wanted = _wanted(request, etag)
    if wanted is not None:
        span = resolve_range(*wanted, size=file.size_bytes)
        if span is None:
            headers["Content-Range"] = f"bytes */{file.size_bytes}"
            return HttpResponse(status=416, headers=headers)
        first, last = span
        headers["Content-Range"] = f"bytes {first}-{last}/{file.size_bytes}"
    stream = default_storage.open(file.stored_id)
    response: Any = StreamingHttpResponse(
        _read(stream, first, last - first + 1),
        status=200 if wanted is None else 206,
        content_type=file.content_type,
        headers=headers,
    )
    response["Content-Length"] = str(last - first + 1)
    response._resource_closers.append(stream.close)
    result: HttpResponseBase = response
    return result


def resolve_range(first: str, last: str, *, size: int) -> tuple[int, int] | None:
    """First and last byte of a range header's two numbers, or None when it cannot be satisfied."""
    if not first:
        length = int(last)
        return (max(0, size - length), size - 1) if length > 0 else None
    begin = int(first)
    end = min(int(last), size - 1) if last else size - 1
    return (begin, end) if begin < size and begin <= end else None


def _wanted(request: HttpRequest, etag: str) -> tuple[str, str] | None:
    """The single range asked for; anything else (several ranges, nonsense, a stale If-Range) is the whole."""
    match = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if match is None or match.groups() == ("", ""):
        return None
    if request.headers.get("If-Range", etag) != etag:
        return None
    return match.group(1), match.group(2)


def _disposition(request: HttpRequest) -> str:
    return "attachment" if "download" in request.GET else "inline"


def _read(stream: IO[bytes], first: int, length: int) -> Iterator[bytes]:
    with stream:
        stream.seek(first)
        while length > 0:
            chunk = stream.read(min(CHUNK_BYTES, length))
            if not chunk:
                return
            length -= len(chunk)
            yield chunk
