"""A proxy on loopback that loses requests or answers, as told by a rule. One request a connection."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import TracebackType

HEAD_END = b"\r\n\r\n"
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for no time: close() sends a reset


class Fate(Enum):
    PASSED = "passed"
    ANSWER_LOST = "answer lost"  # the request arrives and is answered; the answer does not come back
    REQUEST_LOST = "request lost"  # the request does not arrive


@dataclass(frozen=True)
class Request:
    """What a rule judges by. `number` counts from 1."""

    number: int
    method: str
    path: str
    body: bytes


class LossyProxy:
    """Passes requests to a port, or loses them or their answers, as `rule` says.

    `lost` keeps the requests that were not delivered, whole, so that a test can deliver one late.
    """

    def __init__(self, upstream_port: int, rule: Callable[[Request], Fate]) -> None:
        self.fates: list[tuple[str, Fate]] = []
        self.lost: list[bytes] = []
        self._upstream_port, self._rule = upstream_port, rule
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def count(self, fate: Fate, *, method: str) -> int:
        return self.fates.count((method, fate))

    def deliver(self, request: bytes) -> bytes:
        """Send a request on, as a network does that held it back; its whole answer."""
        with socket.create_connection(("127.0.0.1", self._upstream_port)) as upstream:
            upstream.sendall(request)
            answer = b""
            while part := upstream.recv(65536):
                answer += part
        return answer

    def __enter__(self) -> "LossyProxy":
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        running: list[threading.Thread] = []
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed by __exit__
                break
            thread = threading.Thread(target=self._serve, args=(client,))
            thread.start()
            running.append(thread)
        for thread in running:
            thread.join()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(ConnectionError):  # the client was killed: nobody waits for this
            request = read_request(client)
            if request is None:
                return
            head, _, body = request.partition(HEAD_END)
            method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
            with self._lock:
                fate = self._rule(Request(len(self.fates) + 1, method, path, body))
                self.fates.append((method, fate))
            if fate == Fate.REQUEST_LOST:
                self.lost.append(request)
            answer = b"" if fate == Fate.REQUEST_LOST else self.deliver(request)
            if fate == Fate.PASSED:
                client.sendall(answer)
            else:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)


def read_request(client: socket.socket) -> bytes | None:
    """Head and body; None when the client went away before it had sent all."""
    request = b""
    while HEAD_END not in request:
        if not (part := client.recv(65536)):
            return None
        request += part
    head, _, body = request.partition(HEAD_END)
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ),
        0,
    )
    while len(body) < length:
        if not (part := client.recv(65536)):
            return None
        body += part
    return head + HEAD_END + body
