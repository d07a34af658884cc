"""A simulator, a receiver of its webhooks, and an authority for TLS."""

import datetime
import ipaddress
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.simulator_process import SimulatorProcess, Tls


@pytest.fixture(scope="session")
def shared_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    process = SimulatorProcess(tmp_path_factory.mktemp("simulator")).start()
    yield process
    process.stop()


@pytest.fixture
def simulator(shared_process: SimulatorProcess) -> SimulatorProcess:
    """A simulator whose jobs end at once and that remembers nothing."""
    if shared_process.process is None:
        shared_process.start()
    shared_process.reset()
    return shared_process


@dataclass
class Received:
    """One webhook call."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float


@dataclass
class Receiver:
    """An HTTP server that keeps what it is sent and answers as told: `statuses` first, 200 then."""

    port: int = 0
    statuses: list[int] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    most_at_once: int = 0
    at_once: int = 0
    pause: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self, count: int, *, seconds: float = 10) -> list[Received]:
        """The calls, once there are that many."""
        wait_until(lambda: len(self.received) >= count, seconds=seconds)
        return self.received


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with state.lock:
                state.at_once += 1
                state.most_at_once = max(state.most_at_once, state.at_once)
                state.received.append(Received(self.path, dict(self.headers), body, time.time()))
                status = state.statuses.pop(0) if state.statuses else 200
            time.sleep(state.pause)
            with state.lock:
                state.at_once -= 1
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for 127.0.0.1 and localhost, signed by an authority made for this run."""
    folder = tmp_path_factory.mktemp("tls")
    authority_key, server_key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    authority_usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    authority = (
        builder(authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(authority_usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = (
        builder(server_name, server_key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    files = Tls(folder / "server.pem", folder / "server.key", folder / "authority.pem")
    files.certificate.write_bytes(server.public_bytes(Encoding.PEM))
    files.authority.write_bytes(authority.public_bytes(Encoding.PEM))
    files.key.write_bytes(server_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@pytest.fixture
def new_simulator(tmp_path: Path) -> Iterator[Callable[..., SimulatorProcess]]:
    """Starts a simulator of one's own, with the options of SimulatorProcess."""
    started: list[SimulatorProcess] = []

    def start(**options: object) -> SimulatorProcess:
        process = SimulatorProcess(tmp_path / f"data{len(started)}", **options)  # type: ignore[arg-type]
        started.append(process.start())
        return process

    yield start
    for process in started:
        process.stop()


def wait_until(condition: Callable[[], bool], *, seconds: float = 10) -> None:
    """Waits for a condition.

    Raises:
        AssertionError: it did not come true in time.
    """
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
