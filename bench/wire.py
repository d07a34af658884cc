"""Records what the product says to PostgreSQL, on the wire: a proxy that reads one direction along the way.

The wire is the whole truth: BEGIN, COMMIT, savepoints and connection checks are there too, whatever the
driver and the framework call them.
"""

import re
import socket
import struct
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from psycopg.adapt import Transformer
from psycopg.pq import Format

ENCRYPTION_REQUESTS = (80877103, 80877104)  # TLS and GSSAPI; declined, so that we can read
_PLACE = re.compile(r"\$(\d+)")


@dataclass(frozen=True, kw_only=True)
class Value:
    """A parameter as it was sent."""

    oid: int  # of its type; 0: the server chose
    is_binary: bool
    raw: bytes | None

    def literal(self) -> str:
        """The same value inside an SQL text, untyped."""
        if self.raw is None:
            return "NULL"
        if not self.is_binary:
            return "'" + self.raw.decode().replace("'", "''") + "'"
        loaded = Transformer().get_loader(self.oid, Format.BINARY).load(self.raw)
        return "'" + str(loaded).replace("'", "''") + "'" if not isinstance(loaded, bool) else str(loaded)


@dataclass(frozen=True, kw_only=True)
class Said:
    """One statement, with its parameters beside it or in its text."""

    text: str
    values: tuple[Value, ...] = ()

    def as_text(self, types: dict[int, str]) -> str:
        """The statement with its values in it; `types` names the types by their numbers."""

        def place(found: re.Match[str]) -> str:
            value = self.values[int(found[1]) - 1]
            return value.literal() + (f"::{types[value.oid]}" if value.oid else "")

        return _PLACE.sub(place, self.text) if self.values else self.text


class Recorder:
    """Listens on `url` while entered, and keeps what is said in `said`."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.said: list[Said] = []
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in [self._listener, *self._sockets]:
            one.close()

    @property
    def url(self) -> str:
        user = self._target.netloc.rpartition("@")[0]
        port = self._listener.getsockname()[1]
        return self._target._replace(netloc=f"{user}@127.0.0.1:{port}").geturl()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed: the recording is over
            server = socket.create_connection((self._target.hostname, self._target.port or 5432))
            self._sockets += [client, server]
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._listen, args=(client, server), daemon=True).start()

    def _listen(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what the client says, message by message."""
        with client.makefile("rb") as messages:
            while True:
                start = messages.read(8)
                if len(start) < 8:
                    return
                length, code = struct.unpack("!II", start)
                if code not in ENCRYPTION_REQUESTS:
                    break
                client.sendall(b"N")
            server.sendall(start + messages.read(length - 8))
            threading.Thread(target=_pump, args=(server, client), daemon=True).start()
            prepared: dict[bytes, tuple[str, list[int]]] = {}
            while len(head := messages.read(5)) == 5:
                body = messages.read(struct.unpack("!I", head[1:])[0] - 4)
                self._note(head[:1], body, prepared)
                server.sendall(head + body)
        server.close()

    def _note(self, kind: bytes, body: bytes, prepared: dict[bytes, tuple[str, list[int]]]) -> None:
        if kind == b"Q":
            self.said.append(Said(text=body[:-1].decode()))
        elif kind == b"P":
            name, query, rest = body.split(b"\0", 2)
            count = struct.unpack_from("!H", rest)[0]
            prepared[name] = (query.decode(), list(struct.unpack_from(f"!{count}I", rest, 2)))
        elif kind == b"B":
            _, name, rest = body.split(b"\0", 2)
            text, oids = prepared[name]
            self.said.append(Said(text=text, values=_values(rest, oids)))


def _values(rest: bytes, oids: list[int]) -> tuple[Value, ...]:
    """The parameters of a Bind message."""
    count = struct.unpack_from("!H", rest)[0]
    formats = list(struct.unpack_from(f"!{count}H", rest, 2))
    at = 2 + 2 * count
    total = struct.unpack_from("!H", rest, at)[0]
    at += 2
    formats = formats * total if count == 1 else formats or [0] * total
    found = []
    for number in range(total):
        length = struct.unpack_from("!i", rest, at)[0]
        at += 4
        raw = None if length < 0 else rest[at : at + length]
        at += max(length, 0)
        found.append(
            Value(oid=oids[number] if number < len(oids) else 0, is_binary=formats[number] == 1, raw=raw)
        )
    return tuple(found)


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
    except OSError:
        return  # one of the two ended, which ends this connection
    target.close()
