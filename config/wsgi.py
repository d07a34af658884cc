"""The WSGI application that gunicorn serves."""

import os
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
PIECE_BYTES = 64 * 1024  # read at once, and kept in memory; a longer body goes to a temporary file


def with_known_length(application: Application) -> Application:
    """Give a body that comes in chunks its length.

    Django reads as many bytes as Content-Length says, so it would take such a body, which some clients and
    proxies send, for an empty one. At most one byte more than any request may have is read.
    """

    def serve(request: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        encoding = request.get("HTTP_TRANSFER_ENCODING", "").strip().lower()
        if request.get("CONTENT_LENGTH") or encoding != "chunked" or not request.get("wsgi.input_terminated"):
            return application(request, start_response)
        left = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1
        with tempfile.SpooledTemporaryFile(max_size=PIECE_BYTES) as body:
            while left > 0 and (piece := request["wsgi.input"].read(min(PIECE_BYTES, left))):
                body.write(piece)
                left -= len(piece)
            length = body.tell()
            body.seek(0)
            return application({**request, "CONTENT_LENGTH": str(length), "wsgi.input": body}, start_response)

    return serve


application = with_known_length(get_wsgi_application())
