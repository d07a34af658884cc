"""What the simulator is told by its environment and its command line."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PORT = 8900
DEFAULT_SECONDS = 6.0  # long enough that a person sees a place in the queue and then progress
FOLDER = "simulator"  # inside the data directory


@dataclass(frozen=True, slots=True)
class Settings:
    """How one process serves: addresses, folder, the key it accepts, how long a job takes."""

    host: str
    port: int
    folder: Path
    public_url: str
    tls_certificate: str | None
    tls_key: str | None
    job_seconds: float
    accepted_key: str | None

    @property
    def journal_path(self) -> Path:
        return self.folder / "journal.sqlite3"


def read_settings(*, arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from flags, else from the environment, else the defaults.

    Raises:
        SystemExit: a flag or a value that cannot be understood.
    """
    options = _parser(environment).parse_args(arguments)
    if (options.tls_cert is None) != (options.tls_key is None):
        raise SystemExit("SIMULATOR_TLS_CERT and SIMULATOR_TLS_KEY are given together or not at all")
    scheme = "https" if options.tls_cert else "http"
    return Settings(
        host=options.host,
        port=options.port,
        folder=Path(options.data_dir) / FOLDER,
        public_url=(options.public_url or f"{scheme}://{options.host}:{options.port}").rstrip("/"),
        tls_certificate=options.tls_cert,
        tls_key=options.tls_key,
        job_seconds=0.0 if options.instant else max(0.0, options.seconds),
        accepted_key=options.key,
    )


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    read = environment.get
    parser.add_argument("--host", default=read("SIMULATOR_HOST") or "127.0.0.1")
    parser.add_argument("--port", type=int, default=int(read("SIMULATOR_PORT") or DEFAULT_PORT))
    parser.add_argument("--data-dir", default=read("DATA_DIR") or "./var")
    parser.add_argument("--tls-cert", default=read("SIMULATOR_TLS_CERT") or None)
    parser.add_argument("--tls-key", default=read("SIMULATOR_TLS_KEY") or None)
    parser.add_argument(
        "--seconds", type=float, default=float(read("SIMULATOR_SECONDS") or DEFAULT_SECONDS), help="of a job"
    )
    parser.add_argument("--instant", action="store_true", default=read("SIMULATOR_INSTANT") == "1")
    parser.add_argument("--public-url", default=read("SIMULATOR_PUBLIC_URL") or None)
    parser.add_argument("--key", default=read("SIMULATOR_KEY") or None, help="the only key accepted")
    return parser
