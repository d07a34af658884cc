"""Order one video per line of a file, and pay for each exactly once, whatever breaks in between.

    python examples/client.py --url http://127.0.0.1:8000 --token … --file prompts.jsonl --out videos

The file holds JSON lines {"item_id", "prompt"} (*.jsonl), or plain text with a prompt per line. Kill the
program whenever you like and start it again with the same command. Standard library only: copy it.

Why nothing is paid twice
* An id is stored, with its body, in a journal next to the file (FILE.oncereel) before the first byte is sent,
  so after a crash the same question is asked again, word for word, and not a new one.
* The id is derived from the run's name, the item and the body. Losing even the journal gives the same ids,
  which the server answers from its memory; a random id would be as safe as the journal is. A digest of the
  whole file is no part of it, as an added line must not make new ids of the others. `--run NAME` buys anew.
* An answer that did not come says nothing. The id is read, and the same body posted again only where the
  server does not know it: three times at most, within five minutes. Then the id is abandoned, so that the
  server never accepts it; only the 200 of that makes "not charged" true.
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
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAMESPACE = uuid.UUID("6f0c53a0-5c1e-4a55-9d43-0e5a1f6f7d11")  # any fixed one; ids are derived within it
RESEND_SECONDS, RESEND_TIMES = 300.0, 3  # what is still unseen after these is abandoned
IDS_PER_READ = 100  # as many as one `?ids=` may hold
SLOWEST_SECONDS = 30.0  # between two tries while the server cannot be reached
TIMEOUT_SECONDS = 30.0
CONFLICTS = (400, 409, 413, 415)  # refuse this POST alone: an earlier one may have arrived


@dataclass(kw_only=True)
class Video:
    """One line of the file, and what is known of its order. `state` is `new`, `open`, `refused` (certainly
    not taken; asked again by the next run), or how it ended. Times are seconds of the wall clock."""

    id: str
    item_id: str
    body: dict[str, Any]
    state: str = "new"
    posts: int = 0
    first_post_at: float = 0.0
    acknowledged: bool = False  # the server has answered for this id that it has it
    read_at: float = 0.0  # when to look again
    text: str = ""  # the server's sentence: what happened, and what happened to the money


class Journal:
    """An append-only file with a line for each change of a video, on the disk before anything follows."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]  # nothing was done yet about a line that a crash has torn
        known = [Video(**json.loads(line)) for line in whole.splitlines()]
        self.videos = {video.id: video for video in known}
        self._file = path.open("ab")
        self._file.truncate(len(whole))

    def save(self, video: Video) -> None:
        self._file.write(json.dumps(asdict(video), ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


class SignIn(Exception):
    """The token is not accepted; everything is kept for a run with a token of the same owner."""


@dataclass
class Answer:
    """Status 0: no answer came, or none of ours, so it says nothing about any video."""

    status: int
    document: dict[str, Any] = field(default_factory=dict)
    retry_after: float = 0.0


class Server:
    def __init__(self, url: str, token: str) -> None:
        self.url = urlsplit(url)
        self.headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        self.headers["Connection"] = "close"

    def open(self, method: str, path: str, body: bytes | None = None) -> http.client.HTTPResponse:
        """One request on a fresh connection, as a stale one looks like a lost answer; never repeated."""
        is_secure = self.url.scheme == "https"
        connect = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        connection = connect(self.url.netloc, timeout=TIMEOUT_SECONDS)
        connection.request(method, self.url.path.rstrip("/") + path, body=body, headers=self.headers)
        return connection.getresponse()

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Raises: SignIn."""
        raw = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        try:
            with self.open(method, path, raw) as response:
                if response.status in (401, 403):
                    raise SignIn
                document, wait = json.loads(response.read()), response.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException, ValueError):
            return Answer(0)
        if not isinstance(document, dict) or (response.status >= 400 and "code" not in document):
            return Answer(0)
        return Answer(response.status, document, float(wait) if wait.isdecimal() else 0.0)


class Order:
    """The whole file: sends what is new, follows what is open, fetches what is ready."""

    def __init__(self, server: Server, journal: Journal, out: Path, at_once: int) -> None:
        self.server, self.journal, self.out, self.at_once = server, journal, out, at_once
        self.failures = 0  # calls in a row without an answer

    def run(self, wanted: list[Video]) -> list[Video]:
        """Carry the wanted videos to their ends. An open order of an item comes before a changed one."""
        unfinished = {v.item_id: v for v in self.journal.videos.values() if v.state == "open"}
        videos = [unfinished.get(v.item_id) or self.journal.videos.get(v.id) or v for v in wanted]
        for video in videos:
            if video.state == "refused":
                video.state, video.posts = "new", 0
            if video.state == "new":
                self.journal.save(video)
        while left := [v for v in videos if v.state in ("new", "open")]:
            room = self.at_once - sum(video.state == "open" for video in left)
            for video in [video for video in left if video.state == "new"][:room]:
                if not self.failures:
                    self.post(video)
            due = [video for video in left if video.state == "open" and video.read_at <= time.time()]
            for first in range(0, len(due), IDS_PER_READ):
                self.read(due[first : first + IDS_PER_READ])
            soonest = min((video.read_at for video in left if video.state == "open"), default=0.0)
            time.sleep(min(max(soonest - time.time(), 0.0), 1.0))
        return videos

    def post(self, video: Video) -> None:
        """Send once. Whatever is not a clear answer is left to the next read."""
        video.state, video.posts = "open", video.posts + 1
        video.first_post_at = video.first_post_at if video.posts > 1 else time.time()
        self.journal.save(video)
        answer = self.server.call("POST", "/api/videos", video.body)
        self.wait(video, 1.0, answer)
        self.failures += answer.status == 0
        if answer.status in (200, 201):
            self.learn(video, answer.document)
        elif answer.status in (402, 410) or (answer.status in CONFLICTS and video.posts == 1):
            state = "refused" if answer.status in CONFLICTS else str(answer.document["code"])
            self.end(video, state, answer.document["message"]["text"])
        elif answer.status in CONFLICTS:
            self.abandon(video)
        # 422: the id has another body, so reading it shows that video. Anything else says nothing.

    def read(self, videos: list[Video]) -> None:
        """Read many ids in one request, and act on each by what the server says."""
        by_id = {video.id: video for video in videos}
        answer = self.server.call("GET", f"/api/videos?ids={','.join(by_id)}")
        if answer.status != 200:
            self.failures += 1
            for video in videos:
                self.wait(video, min(2.0**self.failures, SLOWEST_SECONDS), answer)
            if self.failures == 3:
                print("The server cannot be reached; still trying. Nothing is charged twice.", flush=True)
            return
        self.failures = 0
        for entry in answer.document["results"]:
            video = by_id[entry["id"]]
            if entry.get("code") != "not_received":
                self.learn(video, entry)
            elif video.acknowledged:
                self.end(video, "gone", "The record is gone; your statement shows what was charged.")
            elif time.time() - video.first_post_at < RESEND_SECONDS and video.posts <= RESEND_TIMES:
                self.post(video)
            else:
                self.abandon(video)

    def abandon(self, video: Video) -> None:
        """Make sure that the id can never be accepted, and only then say that it was not charged."""
        answer = self.server.call("POST", f"/api/videos/{video.id}/abandon")
        self.wait(video, 2.0, answer)
        if answer.status == 200:
            self.end(video, "abandoned", "Never received, not charged. Another --run orders it again.")
        elif answer.status in (409, 410):  # it did arrive
            video.acknowledged = True

    def learn(self, video: Video, told: dict[str, Any]) -> None:
        """Take in what the server says of an id that it knows."""
        if not video.acknowledged:
            video.acknowledged = True
            self.journal.save(video)
        state = told.get("state") or told["code"]
        self.wait(video, told.get("poll_after_seconds") or 2.0)
        if state == "completed" and not self.download(video, told["result"]["url"]):
            return
        if state in ("completed", "failed", "deleted", "abandoned"):
            self.end(video, state, told["message"]["text"])

    def download(self, video: Video, path: str) -> bool:
        """Fetch a result; its name appears only when it is whole. False: not now."""
        name = video.item_id if re.fullmatch(r"\w[\w.-]{0,80}", video.item_id) else video.id
        draft = self.out / f"{name}.mp4.part"
        try:
            with self.server.open("GET", path) as response, draft.open("wb") as file:
                shutil.copyfileobj(response, file)
                is_whole = response.status == 200 and str(file.tell()) == response.headers["Content-Length"]
        except (OSError, http.client.HTTPException) as error:  # the network's, or a full disk's
            print(f"{video.item_id}  is ready and not fetched yet: {error}", flush=True)
            return False
        if is_whole:
            draft.replace(self.out / f"{name}.mp4")
        return is_whole

    def wait(self, video: Video, seconds: float, answer: Answer | None = None) -> None:
        """Look again after about this long: jitter keeps many clients from coming in step."""
        told = answer.retry_after if answer else 0.0
        video.read_at = time.time() + max(seconds * random.uniform(0.8, 1.2), told)

    def end(self, video: Video, state: str, text: str) -> None:
        video.state, video.text = state, text
        self.journal.save(video)
        print(f"{video.item_id}  {state}  {text}", flush=True)


def read_items(path: Path) -> Iterator[tuple[str, str]]:
    """(item_id, prompt) of each line. A line of plain text is named by its words, not by its place."""
    seen: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        is_json = path.suffix == ".jsonl"
        item = json.loads(line) if is_json else {"item_id": hashlib.sha256(line.encode()).hexdigest()[:12]}
        name = str(item["item_id"])
        seen[name] += 1
        if is_json and seen[name] > 1:
            raise SystemExit(f"item_id {name} is there twice; nothing was sent.")
        yield (name, item["prompt"]) if is_json else (f"line-{name}-{seen[name]}", line)


def make_video(item_id: str, prompt: str, *, model: str, run: str) -> Video:
    body = {"model": model, "prompt": prompt}
    derived = str(uuid.uuid5(NAMESPACE, json.dumps([run, item_id, body])))
    return Video(id=derived, item_id=item_id, body={"id": derived, **body})


def main() -> int:
    parser = argparse.ArgumentParser(description="Order one video per line of a file, each exactly once.")
    add = parser.add_argument
    add("--url", required=True)
    add("--token", default=os.environ.get("ONCEREEL_TOKEN", ""), help="or ONCEREEL_TOKEN")
    add("--file", required=True, type=Path)
    add("--out", required=True, type=Path, help="folder for the videos")
    add("--model", default="veo3.1")
    add("--limit", type=int, help="only the first N lines")
    add("--at-once", type=int, default=50, help="orders that are open at the same time")
    add("--run", default="1", help="another name orders, and pays for, everything anew")
    given = parser.parse_args()
    items = list(read_items(given.file))[: given.limit]
    given.out.mkdir(parents=True, exist_ok=True)
    journal = Journal(given.file.with_name(given.file.name + ".oncereel"))
    order = Order(Server(given.url, given.token), journal, given.out, given.at_once)
    try:
        videos = order.run([make_video(*item, model=given.model, run=given.run) for item in items])
    except SignIn:
        print("The token is not accepted. Everything is kept: go on with a token of the same owner.")
        return 2
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from here; nothing is charged twice.")
        return 130
    counts = Counter(video.state for video in videos)
    print(", ".join(f"{number} {state}" for state, number in sorted(counts.items())))
    return 0 if set(counts) == {"completed"} else 1


if __name__ == "__main__":
    sys.exit(main())
