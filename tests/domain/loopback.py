"""A TCP server on loopback that tests script byte by byte, and the certificates to speak TLS with it."""

import asyncio
import contextlib
import datetime
import ipaddress
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Script = Callable[["Visit"], Awaitable[None]]


@dataclass
class Visit:
    """One connection: what came in, and the means to answer or to misbehave."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received: bytearray = field(default_factory=bytearray)

    async def read_request(self) -> bytes:
        """Read head and, by its length, body; returns what came, whole or not."""
        while b"\r\n\r\n" not in self.received:
            if not await self._more():
                return bytes(self.received)
        head, _, body = bytes(self.received).partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        missing = length - len(body)
        while missing > 0 and (count := await self._more()):
            missing -= count
        return bytes(self.received)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        named = {"content-length": str(len(body)), "connection": "close"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        await self.send(f"HTTP/1.1 {status} Word\r\n{lines}\r\n".encode() + body)

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    async def _more(self) -> int:
        data = await self.reader.read(65536)
        self.received += data
        return len(data)


@dataclass
class Server:
    """What a scripted server has seen."""

    port: int
    visits: list[Visit] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def received(self) -> bytes:
        return b"".join(bytes(visit.received) for visit in self.visits)

    @property
    def posts(self) -> int:
        return self.received.count(b"POST ")


@contextlib.asynccontextmanager
async def serving(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Run `script` for each connection while the block runs; closes every connection afterwards."""
    tasks: set[asyncio.Task[None]] = set()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        current = asyncio.current_task()
        assert current is not None
        tasks.add(current)
        entry = Visit(reader, writer)
        seen.visits.append(entry)
        try:
            await script(entry)
        except (ConnectionError, asyncio.CancelledError):
            entry.writer.transport.abort()
        finally:
            writer.close()
            try:
                await asyncio.wait_for(writer.wait_closed(), 1)
            except (OSError, TimeoutError, asyncio.CancelledError):
                # A client that leaves without TLS's farewell keeps the close waiting: the test is over for
                # it.
                writer.transport.abort()

    server = await asyncio.start_server(visit, "127.0.0.1", 0, ssl=tls)
    seen = Server(server.sockets[0].getsockname()[1])
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def unused_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def certificate(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A self-signed certificate for names and addresses: the server's context, and a client's that trusts
    it.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback test")])
    now = datetime.datetime.now(datetime.UTC)
    written = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + written.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(
        cadata=written.public_bytes(serialization.Encoding.PEM).decode()
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
