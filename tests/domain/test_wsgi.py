"""A body that comes in chunks, without a length, reaches the application whole."""

import io
from typing import Any

import pytest
from django.conf import settings

from config.wsgi import with_known_length


def received(**environ: Any) -> tuple[str | None, bytes]:
    """What the application is told of the length, and what it reads."""
    seen: list[tuple[str | None, bytes]] = []

    def application(given: dict[str, Any], _start_response: Any) -> list[bytes]:
        seen.append((given.get("CONTENT_LENGTH"), given["wsgi.input"].read()))
        return []

    list(with_known_length(application)(environ, None))
    return seen[0]


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 200_000])
def test_a_chunked_body_gets_its_length(size: int) -> None:
    body = bytes(index % 251 for index in range(size))
    told = received(
        **{"HTTP_TRANSFER_ENCODING": "Chunked", "wsgi.input_terminated": True, "wsgi.input": io.BytesIO(body)}
    )
    assert told == (str(size), body)


def test_of_an_endless_body_one_byte_more_than_allowed_is_read() -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return b"x" * size

    length, _ = received(
        **{"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, "wsgi.input": Endless()}
    )
    assert length == str(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)


@pytest.mark.parametrize(
    "environ",
    [
        {"CONTENT_LENGTH": "3", "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True},
        {"CONTENT_LENGTH": "3", "wsgi.input_terminated": True},
        {"HTTP_TRANSFER_ENCODING": "chunked"},  # a server that does not say where the body ends
        {"wsgi.input_terminated": True},
    ],
)
def test_any_other_body_is_left_as_it_is(environ: dict[str, Any]) -> None:
    assert received(**{**environ, "wsgi.input": io.BytesIO(b"abc")}) == (
        environ.get("CONTENT_LENGTH"),
        b"abc",
    )
