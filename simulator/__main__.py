"""`python -m simulator` serves; `python -m simulator journal --data-dir D` prints what the journal holds."""

import argparse
import json
import logging
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from simulator.app import make_app
from simulator.journal import connect, summary
from simulator.settings import FOLDER, Settings, read_settings

SHUTDOWN_SECONDS = 1.0  # hanging answers are meant to hang; nobody waits for them


def main(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] == "journal":
        return _print_journal(arguments[1:])
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    settings = read_settings(arguments=arguments)
    web.run_app(
        make_app(settings),
        host=settings.host,
        port=settings.port,
        ssl_context=_tls(settings),
        access_log=None,
        shutdown_timeout=SHUTDOWN_SECONDS,
        print=None,
        handle_signals=True,
        backlog=1024,
    )
    return 0


def _print_journal(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator journal")
    parser.add_argument("--data-dir", default="./var")
    path = Path(parser.parse_args(arguments).data_dir) / FOLDER / "journal.sqlite3"
    if not path.exists():
        print("there is no journal", file=sys.stderr)
        return 1
    connection = connect(path)
    print(json.dumps(summary(connection)))
    connection.close()
    return 0


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls_certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    return context


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
