"""Order one video per line of a file, and pay for each exactly once, whatever breaks in between.

    python examples/client.py --url http://127.0.0.1:8000 --token … --file prompts.jsonl --out videos

The file holds JSON lines {"item_id", "prompt"}, or plain text with a prompt per line. Kill the program whenever
you like and start it again with the same command. Standard library only: copy it and make it yours.

Why nothing is paid twice
* An id is stored, with its body, in a journal next to the file (`FILE.oncereel`) *before* the first byte is sent,
  so after a crash the same question is asked again, word for word, and not a new one.
* The id is derived from run name, item and body, so losing even the journal yields the same ids, which the server
  answers from its memory. A random id would be safe only as long as the journal is. The digest of the whole file
  is left out: adding a line must not make new ids of the old ones. To buy the same again: `--run ANOTHER-NAME`.
* An answer that did not come says nothing. The id is read, and posted again, same id and same body, only where the
  server does not know it: at most three times, within five minutes. After that the id is *abandoned*, which tells
  the server never to accept it; only its 200 makes "not charged" true.
"""

import argparse
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAMESPACE = uuid.UUID("6f0c53a0-5c1e-4a55-9d43-0e5a1f6f7d11")  # any fixed one; ids are derived within it
RESEND_SECONDS, RESEND_TIMES = 300.0, 3  # a request that is still unseen after these is abandoned
IDS_PER_READ = 100  # what one `?ids=` may hold
SLOWEST_SECONDS = 30.0  # between two tries while the server cannot be reached
TIMEOUT_SECONDS = 30.0
CONFLICTS = (400, 409, 413, 415)  # refusals, but of this POST alone: an earlier one may have arrived


@dataclass
class Video:
    """One line of the file, and what is known of its order. Times are seconds of the wall clock."""

    id: str
    item_id: str
    body: dict[str, Any]
    posts: int = 0  # POSTs that may have left this machine and were not refused
    first_post_at: float = 0.0
    acknowledged: bool = False  # the server has answered 2xx for this id at least once
    state: str = "new"  # new, open, refused (ask again in the next run), or how it ended
    text: str = ""  # the server's sentence: what happened, and what happened to the money
    read_at: float = 0.0  # when to look again

    @property
    def is_open(self) -> bool:
        return self.state in ("new", "open")


class Journal:
    """An append-only file of what was stored, sent and learned; each line is on the disk before we go on."""

    def __init__(self, path: Path) -> None:
        self.events: list[dict[str, Any]] = []
        whole = path.read_bytes() if path.exists() else b""
        whole = whole[: whole.rfind(b"\n") + 1]  # a line torn by a crash was not acted upon
        self.events = [json.loads(line) for line in whole.splitlines()]
        self._file = path.open("ab")
        self._file.truncate(len(whole))

    def write(self, video: Video, event: str, **members: Any) -> None:
        line = json.dumps({"id": video.id, "event": event, **members}, ensure_ascii=False)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


class SignIn(Exception):
    """The token is not accepted. Everything is kept for a run with a token of the same owner."""


@dataclass
class Answer:
    """An HTTP answer. Status 0: none came, or none of ours, so it says nothing about any video."""

    status: int
    document: dict[str, Any]
    retry_after: float = 0.0

    @property
    def text(self) -> str:
        return str(self.document.get("message", {}).get("text") or self.document.get("detail", ""))


class Server:
    def __init__(self, url: str, token: str) -> None:
        self.url = urlsplit(url)
        self.headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}

    def open(self, method: str, path: str, body: bytes | None = None) -> http.client.HTTPResponse:
        secure = self.url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self.url.netloc, timeout=TIMEOUT_SECONDS)  # fresh: a stale one looks like a lost answer
        connection.request(method, self.url.path.rstrip("/") + path, body=body, headers=self.headers)
        return connection.getresponse()

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """One request, never repeated here. Raises: SignIn."""
        raw = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        try:
            with self.open(method, path, raw) as response:
                status, document = response.status, json.loads(response.read())
                wait = response.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException, ValueError):
            return Answer(0, {})
        if status in (401, 403):
            raise SignIn
        if not isinstance(document, dict):
            return Answer(0, {})
        return Answer(status, document, float(wait) if wait.isdecimal() else 0.0)


class Order:
    """The whole file: sends what is new, follows what is open, fetches what is ready."""

    def __init__(self, *, server: Server, journal: Journal, videos: list[Video], out: Path, at_once: int) -> None:
        self.server, self.journal, self.out, self.at_once = server, journal, out, at_once
        self.failed_reads = 0
        self.videos = self._remembered(videos)

    def _remembered(self, wanted: list[Video]) -> list[Video]:
        """The wanted videos as the journal left them; an open order of the same item goes first."""
        known: dict[str, Video] = {}
        for entry in self.journal.events:
            if entry["event"] == "stored":
                known.setdefault(entry["id"], Video(entry["id"], entry["item_id"], entry["body"]))
                continue
            video, event = known[entry["id"]], entry["event"]
            if event == "sending":
                video.posts, video.first_post_at = video.posts + 1, video.first_post_at or entry["at"]
                video.state = "open"
            elif event == "acknowledged":
                video.acknowledged = True
            else:
                video.state, video.text = entry["event"], entry["text"]
                video.posts = 0 if event == "refused" else video.posts
        unfinished = {video.item_id: video for video in known.values() if video.is_open}
        chosen = [unfinished.get(video.item_id) or known.get(video.id) or video for video in wanted]
        for video in chosen:
            if video.state == "refused":  # certainly not taken, so it may be asked again, under the same id
                video.state = "new"
            elif video.state == "new" and video.id not in known:
                self.journal.write(video, "stored", item_id=video.item_id, body=video.body)
        return chosen

    def run(self) -> None:
        while open_videos := [video for video in self.videos if video.is_open]:
            running = sum(video.state == "open" for video in open_videos)
            for video in [video for video in open_videos if video.state == "new"][: self.at_once - running]:
                self.post(video)
            due = [video for video in open_videos if video.state == "open" and video.read_at <= time.time()]
            for first in range(0, len(due), IDS_PER_READ):
                self.read(due[first : first + IDS_PER_READ])
            waits = [video.read_at for video in self.videos if video.state == "open"]
            if waits:
                time.sleep(min(max(min(waits) - time.time(), 0.0), 1.0))

    def post(self, video: Video) -> None:
        """Send once. Whatever is not a clear answer is left to the next read."""
        self.journal.write(video, "sending", at=time.time())
        video.posts, video.first_post_at = video.posts + 1, video.first_post_at or time.time()
        video.state = "open"
        answer = self.server.call("POST", "/api/videos", video.body)
        video.read_at = time.time() + max(answer.retry_after, random.uniform(1.0, 3.0))
        if answer.status in (200, 201):
            self.learn(video, answer.document)
        elif answer.status in (402, 410):
            self.end(video, str(answer.document["code"]), answer.text)
        elif answer.status in CONFLICTS and video.posts == 1:
            self.end(video, "refused", answer.text)
        elif answer.status in CONFLICTS:
            self.abandon(video)
        # 422: the id is known with another body, so reading it shows that video. Anything else says nothing.

    def read(self, videos: list[Video]) -> None:
        """Read many ids in one request, and act on each by what the server says."""
        by_id = {video.id: video for video in videos}
        answer = self.server.call("GET", f"/api/videos?ids={','.join(by_id)}")
        if answer.status != 200:
            self.failed_reads += 1
            pause = min(2.0**self.failed_reads, SLOWEST_SECONDS) * random.uniform(0.8, 1.2)
            for video in videos:
                video.read_at = time.time() + max(pause, answer.retry_after)
            if self.failed_reads == 3:
                print("The server cannot be read now; still trying. You will not be charged twice.", flush=True)
            return
        self.failed_reads = 0
        for entry in answer.document["results"]:
            if entry.get("code") == "not_received":
                self.not_received(by_id[entry["id"]])
            else:
                self.learn(by_id[entry["id"]], entry)

    def not_received(self, video: Video) -> None:
        """404: post again, wait, or make sure that it can never arrive."""
        if video.acknowledged:
            self.end(video, "gone", "The record of this video is gone; your statement shows what was charged.")
        elif time.time() - video.first_post_at < RESEND_SECONDS and video.posts <= RESEND_TIMES:
            self.post(video)
        else:
            self.abandon(video)

    def abandon(self, video: Video) -> None:
        answer = self.server.call("POST", f"/api/videos/{video.id}/abandon")
        video.read_at = time.time() + max(answer.retry_after, random.uniform(2.0, 4.0))
        if answer.status == 200:
            self.end(video, "abandoned", "Never received, not charged. Order it again with another --run.")
        elif answer.status in (409, 410):  # it did arrive
            video.acknowledged, video.read_at = True, 0.0

    def learn(self, video: Video, told: dict[str, Any]) -> None:
        """Take in what the server says of a video it knows."""
        if not video.acknowledged:
            self.journal.write(video, "acknowledged")
            video.acknowledged = True
        text = told["message"]["text"]
        if told.get("state") == "completed" and not self.download(video, told["result"]["url"]):
            video.read_at = time.time() + random.uniform(2.0, 4.0)
        elif told.get("state") in ("completed", "failed") or "code" in told:
            self.end(video, told.get("state") or told["code"], text)
        else:
            video.read_at = time.time() + (told.get("poll_after_seconds") or 2) * random.uniform(0.8, 1.2)

    def download(self, video: Video, path: str) -> bool:
        """Fetch a result under a name that appears only when it is whole."""
        name = video.item_id if re.fullmatch(r"\w[\w.-]{0,80}", video.item_id) else video.id
        draft = self.out / f"{name}.mp4.part"
        try:
            with self.server.open("GET", path) as response, draft.open("wb") as file:
                shutil.copyfileobj(response, file)
                expected = int(response.headers.get("Content-Length") or -1)
                whole = response.status == 200 and expected in (-1, file.tell())
        except (OSError, http.client.HTTPException):
            return False
        if whole:
            draft.replace(self.out / f"{name}.mp4")
        return whole

    def end(self, video: Video, state: str, text: str) -> None:
        video.state, video.text = state, text
        self.journal.write(video, state, text=text)
        print(f"{video.item_id}  {state}  {text}", flush=True)


def read_items(path: Path) -> Iterator[tuple[str, str]]:
    """(item_id, prompt) of each line. A line of plain text is named by its words, so that order does not matter."""
    seen: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        if path.suffix == ".jsonl":
            item = json.loads(line)
            name, prompt = str(item["item_id"]), str(item["prompt"])
            if seen[name]:
                raise SystemExit(f"item_id {name} is there twice; nothing was sent.")
        else:
            prompt, digest = line, hashlib.sha256(line.encode()).hexdigest()[:12]
            name = f"line-{digest}-{seen[f'line-{digest}'] + 1}"
            seen[f"line-{digest}"] += 1
        seen[name] += 1
        yield name, prompt


def make_videos(items: Iterable[tuple[str, str]], *, model: str, run: str) -> list[Video]:
    videos = []
    for item_id, prompt in items:
        body = {"model": model, "prompt": prompt}
        derived = str(uuid.uuid5(NAMESPACE, json.dumps([run, item_id, body], sort_keys=True)))
        videos.append(Video(derived, item_id, {"id": derived, **body}))
    return videos


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", default=os.environ.get("ONCEREEL_TOKEN"), help="or ONCEREEL_TOKEN")
    parser.add_argument("--file", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path, help="folder for the videos")
    parser.add_argument("--model", default="veo3.1")
    parser.add_argument("--limit", type=int, help="only the first N lines")
    parser.add_argument("--at-once", type=int, default=50, help="videos that are open at the same time")
    parser.add_argument("--run", default="1", help="another name orders, and pays for, everything anew")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    items = list(read_items(given.file))[: given.limit]
    videos = make_videos(items, model=given.model, run=given.run)
    journal = Journal(given.file.with_name(given.file.name + ".oncereel"))
    server = Server(given.url, given.token or "")
    order = Order(server=server, journal=journal, videos=videos, out=given.out, at_once=given.at_once)
    try:
        order.run()
    except SignIn:
        print("The token is not accepted. Everything is kept: go on with a token of the same owner.")
        return 2
    except KeyboardInterrupt:
        print("Stopped. Start the same command again to go on; nothing will be charged twice.")
        return 130
    counts = Counter(video.state for video in order.videos)
    print(", ".join(f"{number} {state}" for state, number in sorted(counts.items())))
    return 0 if set(counts) <= {"completed"} else 1


if __name__ == "__main__":
    sys.exit(main())
