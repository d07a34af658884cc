"""Sending an answer, or not: the only place that cuts, stalls or half-sends a connection."""

import asyncio
import http
import socket
import struct
import time

from aiohttp import web

from simulator.faults import Answer, AnswerFault, Cut, distort

HANG_LOOK_SECONDS = 0.5  # how often a hanging answer looks whether the client has gone
ABRUPT = struct.pack("ii", 1, 0)  # SO_LINGER with no time: closing sends RST and drops what is unsent


async def send(request: web.Request, answer: Answer, fault: AnswerFault) -> web.StreamResponse:
    """Answers as the fault allows."""
    if fault.wait:
        await asyncio.sleep(fault.wait)
    answer = distort(answer, fault)
    if fault.hang_seconds is not None:
        await hang(request, fault.hang_seconds)
        cut(request, Cut.RESET, answer)
    elif fault.cut is not None:
        cut(request, fault.cut, answer)
    return respond(answer)


def respond(answer: Answer) -> web.Response:
    """The answer as the server sends it."""
    headers = {"Content-Type": answer.content_type, **answer.headers}
    return web.Response(status=answer.status, body=answer.body, headers=headers)


async def hang(request: web.Request, seconds: float) -> None:
    """Says nothing for that long, or until the client has gone."""
    until = time.monotonic() + seconds
    # The server tells nobody when a client goes, so this looks.
    while time.monotonic() < until and not _is_gone(request):  # noqa: ASYNC110
        await asyncio.sleep(min(HANG_LOOK_SECONDS, max(0.0, until - time.monotonic())))


def cut(request: web.Request, how: Cut, answer: Answer) -> None:
    """Ends the connection: by RST, by a clean end without a byte, or after half of the body."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return
    if how is Cut.HALF:
        transport.write(_head(answer) + answer.body[: len(answer.body) // 2])
        transport.close()
        return
    if how is Cut.CLOSE:
        transport.close()
        return
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABRUPT)
    transport.abort()


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _head(answer: Answer) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {http.HTTPStatus(answer.status).phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
