"""A worker that looks for tasks to send without a pause, until its standard input ends."""

import sys
import threading
import time

import django

PAUSE_SECONDS = 0.002  # between looks that found nothing


def main() -> None:
    django.setup()
    from videos.engine import dispatch

    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print("ready", flush=True)
    while not ended.is_set():
        if not dispatch.dispatch_due():
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
