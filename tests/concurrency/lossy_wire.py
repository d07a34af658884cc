"""A TCP proxy between psycopg and PostgreSQL that loses what the test tells it to lose."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from django.db import connection

COMMIT = b"COMMIT\x00"  # the text of a simple query, as psycopg sends it
CHUNK = 65_536
LATE_SECONDS = 0.4


class Loss(Enum):
    """What happens to a COMMIT and its connection."""

    NONE = "nothing"
    BEFORE = "the server never gets it and sees the client go"
    BEFORE_UNSEEN = "the server never gets it and does not notice that the client is gone"
    LATE = "the client is gone at once, the server gets it a moment later"
    AFTER = "the server has done it, the client is not told"
    NEXT = "the client is told, and loses the connection with its next statement"


class LossyWire:
    """Listens on a loopback port. `losses` are used up one a COMMIT; without any, nothing is lost.

    `is_down`: new connections are closed at once, as when the database restarts.
    """

    def __init__(self, host: str, port: int) -> None:
        self.losses: list[Loss] = []
        self.commits = 0
        self.is_down = False
        self.goes_down_after_a_loss = False
        self._server = (host, port)
        self._kept: list[socket.socket] = []
        self._clients: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self.let_go()

    def let_go(self) -> None:
        """The server notices at last that its clients are gone."""
        while self._kept:
            server = self._kept.pop()
            _shut(server)
            server.close()

    def cut(self) -> None:
        """Every connection ends now."""
        while self._clients:
            _shut(self._clients.pop())

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the test is over
            if self.is_down:
                client.close()
                continue
            self._clients.append(client)
            server = socket.create_connection(self._server)
            threading.Thread(target=self._carry_requests, args=(client, server), daemon=True).start()

    def _carry_requests(self, client: socket.socket, server: socket.socket) -> None:
        answers = threading.Thread(target=_carry, args=(server, client), daemon=True)
        answers.start()
        if self._carry_until_lost(client, server):
            self._kept.append(server)
            client.close()
            return
        _shut(server)
        _shut(client)
        answers.join()
        server.close()
        client.close()

    def _carry_until_lost(self, client: socket.socket, server: socket.socket) -> bool:
        """Carry on until a side ends or the connection is lost; whether the server's side stays open."""
        lost_next = False
        while chunk := _receive(client):
            if lost_next:
                return False
            if COMMIT in chunk:
                self.commits += 1
                loss = self.losses.pop(0) if self.losses else None
                if loss is Loss.NEXT:
                    lost_next = True
                elif loss not in (None, Loss.NONE):
                    return self._lose(loss, chunk, client, server)
            if not _send(server, chunk):
                return False
        return False

    def _lose(self, loss: Loss, chunk: bytes, client: socket.socket, server: socket.socket) -> bool:
        self.is_down = self.goes_down_after_a_loss
        _shut(client)
        if loss is Loss.BEFORE_UNSEEN:
            return True
        if loss is Loss.LATE:
            time.sleep(LATE_SECONDS)
        if loss is not Loss.BEFORE:
            _send(server, chunk)
            time.sleep(LATE_SECONDS / 4)  # long enough for the server to commit before it sees the end
        return False


def _receive(source: socket.socket) -> bytes:
    try:
        return source.recv(CHUNK)
    except OSError:
        return b""


def _send(target: socket.socket, chunk: bytes) -> bool:
    try:
        target.sendall(chunk)
    except OSError:
        return False
    return True


def _carry(source: socket.socket, target: socket.socket) -> None:
    while chunk := _receive(source):
        if not _send(target, chunk):
            return
    _shut(target)


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is shut already


@contextmanager
def wire_to_the_database() -> Iterator[LossyWire]:
    settings = connection.settings_dict
    wire = LossyWire(settings["HOST"] or "127.0.0.1", int(settings["PORT"] or 5432))
    try:
        yield wire
    finally:
        wire.close()


def over(wire: LossyWire, function: Callable[[], Any], *, lock_timeout: str = "5s") -> Callable[[], Any]:
    """The call with this thread's connection led over the wire; for a thread of its own."""

    def run() -> Any:
        mine: dict[str, Any] = dict(connection.settings_dict)
        mine |= {"HOST": "127.0.0.1", "PORT": wire.port}
        mine["OPTIONS"] = {
            **mine["OPTIONS"],
            "sslmode": "disable",
            "gssencmode": "disable",
            "options": f"-c lock_timeout={lock_timeout} -c idle_in_transaction_session_timeout=60s",
        }
        connection.close()
        connection.settings_dict = mine
        return function()

    return run
