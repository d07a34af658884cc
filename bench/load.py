"""A light HTTP load: keep-alive connections driven by one thread, which parses no more than it must."""

import selectors
import socket as sockets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

Request = Callable[[], bytes]  # the whole next request
TIMEOUT_SECONDS = 60.0
_LENGTH = b"content-length:"


@dataclass(kw_only=True)
class Load:
    """What came back."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of this program, which shares the machine with what it measures
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    reconnects: int = 0  # connections the server closed, as it does when it replaces a worker

    @property
    def per_second(self) -> float:
        return sum(self.statuses.values()) / self.seconds

    @property
    def median_latency(self) -> float:
        return median(self.latencies)

    def require_only(self, *statuses: int) -> None:
        """Raises: RuntimeError when an answer was something else, as then the figure means nothing."""
        if set(self.statuses) - set(statuses):
            raise RuntimeError(f"answers other than {statuses}: {dict(self.statuses)}")


@dataclass
class _Connection:
    port: int
    socket: sockets.socket = field(init=False)
    request: bytes = b""
    answer: bytearray = field(default_factory=bytearray)
    sent_at: float = 0.0

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        self.socket = sockets.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_SECONDS)
        self.socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)

    def send(self, request: bytes) -> None:
        self.request, self.sent_at = request, time.perf_counter()
        self.answer.clear()
        self.socket.sendall(request)


def drive(port: int, request: Request, *, connections: int, seconds: float, limit: int | None = None) -> Load:
    """Keep `connections` requests under way for `seconds`, or until `limit` are answered."""
    load = Load()
    selector = selectors.DefaultSelector()
    opened = [_Connection(port) for _ in range(connections)]
    cpu, began = time.process_time(), time.perf_counter()
    left = limit if limit is not None else -1
    running = 0
    for connection in opened:
        if left != 0:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send(request())
            running, left = running + 1, left - 1
    while running:
        events = selector.select(TIMEOUT_SECONDS)
        if not events:
            raise RuntimeError(f"no answer within {TIMEOUT_SECONDS} s")
        for key, _ in events:
            connection = key.data
            status = _receive(connection, selector, load)
            if status is None:
                continue
            now = time.perf_counter()
            load.statuses[status] += 1
            load.latencies.append(now - connection.sent_at)
            if left != 0 and now - began < seconds:
                connection.send(request())
                left -= 1
            else:
                selector.unregister(connection.socket)
                running -= 1
    load.seconds, load.cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    for connection in opened:
        connection.socket.close()
    selector.close()
    return load


def _receive(connection: _Connection, selector: selectors.BaseSelector, load: Load) -> int | None:
    """Take what has come; the status once the answer is whole."""
    try:
        piece = connection.socket.recv(65536)
    except ConnectionResetError:
        piece = b""
    if not piece:
        if connection.answer:
            raise RuntimeError("an answer was cut off")
        # Closed while idle: the request was not read. All of ours are safe to send again.
        selector.unregister(connection.socket)
        connection.socket.close()
        connection.connect()
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.send(connection.request)
        load.reconnects += 1
        return None
    connection.answer += piece
    end = connection.answer.find(b"\r\n\r\n")
    if end < 0 or len(connection.answer) < end + 4 + _body_length(connection.answer[:end]):
        return None
    return int(connection.answer[9:12])


def _body_length(head: bytearray) -> int:
    lower = head.lower()
    at = lower.find(_LENGTH)
    if at < 0:
        return 0
    return int(lower[at + len(_LENGTH) :].split(b"\r\n", 1)[0])


def get(path: str, key: str) -> bytes:
    """A GET with a token."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Token {key}\r\n"
        "Accept: application/json\r\nAccept-Language: en\r\n\r\n"
    ).encode()


def post(path: str, key: str, body: bytes) -> bytes:
    """A POST of JSON with a token."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Token {key}\r\n"
        "Accept: application/json\r\nAccept-Language: en\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
