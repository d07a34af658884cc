"""Programs that order videos and obey the rules for lost answers (docs/api.md).

An id is kept with its body before the first byte is sent, asked for after a lost answer, posted again word
for word where the server does not know it, and abandoned after three times. Some are impatient on purpose.
"""

import http.client
import json
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.chaos.orders import Habit, Order

RESEND_TIMES = 3
OPEN_AT_ONCE = 40  # ids that a client has open: one of unknown fate is open for half a minute
IDS_PER_READ = 100
TIMEOUT_SECONDS = 6.0
SLOWEST_SECONDS = 3.0  # the longest back-off: a run has no hour to wait
REST_SECONDS = 0.3  # what comes due in between is read together
CONFLICTS = (400, 409, 413, 415)
NO_ANSWER = 0


class End(Enum):
    """How an id ended for its client."""

    COMPLETED = "completed"
    FAILED = "failed"
    UNPAID = "insufficient_balance"
    DELETED = "deleted"
    ABANDONED = "abandoned"


@dataclass(kw_only=True)
class Video:
    """What a client knows of one id. Times are of the monotonic clock."""

    order: Order
    posts: int = 0
    acknowledged: bool = False
    created: int = 0  # answers 201
    told: dict[str, Any] = field(default_factory=dict)  # the newest state and charge
    end: End | None = None
    read_at: float = 0.0
    reads_failed: int = 0
    has_cancelled: bool = False
    has_reused: bool = False
    is_deleting: bool = False

    @property
    def id(self) -> str:
        return self.order.id


@dataclass
class Answer:
    status: int
    document: dict[str, Any] = field(default_factory=dict)


class Pace:
    """Keeps orders and faults in step, so that neither runs without the other."""

    def __init__(self, *, orders: int, faults: int, slack: int) -> None:
        self._orders, self._faults, self._slack = orders, faults, slack
        self._started = self._done = 0
        self._lock = threading.Lock()

    def may_order(self) -> bool:
        """Whether a client may start one more; it counts as started."""
        with self._lock:
            if self._started > self._orders * self._done / self._faults + self._slack:
                return False
            self._started += 1
            return True

    def may_fault(self) -> bool:
        with self._lock:
            return self._started + self._slack >= self._orders * self._done / self._faults

    def count_fault(self) -> None:
        with self._lock:
            self._done += 1

    def let_all_go(self) -> None:
        with self._lock:
            self._done = self._faults

    @property
    def is_over(self) -> bool:
        with self._lock:
            return self._started >= self._orders


class Client(threading.Thread):
    """One program of one owner. `broken` has what should never be, a sentence each."""

    def __init__(
        self, *, name: str, token: str, port: int, orders: list[Order], pace: Pace, seed: str
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.videos: dict[str, Video] = {}
        self.statuses: Counter[str] = Counter()
        self.broken: list[str] = []
        self.stopped = threading.Event()
        self._orders = list(reversed(orders))
        self._port, self._token, self._pace = port, token, pace
        self._chance = random.Random(seed)
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix=name)
        self._lock = threading.Lock()

    # --- the loop -----------------------------------------------------------------------------------

    def run(self) -> None:
        while not self.stopped.is_set() and (self._orders or self.open_videos()):
            if self._orders and len(self.open_videos()) < OPEN_AT_ONCE and self._pace.may_order():
                self._begin(self._orders.pop())
                continue
            now = time.monotonic()
            due = [video for video in self.open_videos() if video.read_at <= now]
            for first in range(0, len(due), IDS_PER_READ):
                self._read(due[first : first + IDS_PER_READ])
            self.stopped.wait(REST_SECONDS)
        self._pool.shutdown()

    def open_videos(self) -> list[Video]:
        return [video for video in list(self.videos.values()) if video.end is None]

    @property
    def is_done(self) -> bool:
        return not self._orders and not self.open_videos()

    @property
    def sign(self) -> dict[str, str]:
        return {"Authorization": f"Token {self._token}"}

    # --- asking -------------------------------------------------------------------------------------

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """One request on a fresh connection, never repeated. Status 0: no answer, or not our JSON."""
        headers = {**self.sign, "Content-Type": "application/json", "Connection": "close"}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            response = connection.getresponse()
            text = response.read()
            answer = Answer(response.status, json.loads(text) if text else {})
        except (OSError, http.client.HTTPException, ValueError):
            answer = Answer(NO_ANSWER)
        finally:
            connection.close()
        self._count(method, path, answer)
        return answer

    def _count(self, method: str, path: str, answer: Answer) -> None:
        what = f"{method} {path.rpartition('/')[2]}" if path.endswith(("/abandon", "/cancel")) else method
        with self._lock:
            self.statuses[f"{what} {answer.status or 'no answer'}"] += 1
            if answer.status >= 500 and answer.status != 503:
                self.broken.append(f"{method} {path} was answered {answer.status}")

    # --- ordering -----------------------------------------------------------------------------------

    def _begin(self, order: Order) -> None:
        video = self.videos[order.id] = Video(order=order)
        match order.habit:
            case Habit.TWICE:
                self._post_many(video, times=3)
            case Habit.ABANDON_FIRST:
                self._abandon(video)
                self._post(video)
            case Habit.ABANDON_MEANWHILE:
                posting = self._pool.submit(self._post, video)
                self._abandon(video)
                posting.result()
            case _:
                self._post(video)

    def _post_many(self, video: Video, *, times: int) -> None:
        """The same request several times at once, as an impatient hand does."""
        video.posts += times
        path, body = "/api/videos", video.order.body
        calls = [self._pool.submit(self.call, "POST", path, body) for _ in range(times)]
        for answer in [call.result() for call in calls]:
            self._learn_of_post(video, answer)

    def _post(self, video: Video) -> None:
        video.posts += 1
        self._learn_of_post(video, self.call("POST", "/api/videos", video.order.body))

    def _learn_of_post(self, video: Video, answer: Answer) -> None:
        self._wait(video, 1.0)
        video.created += answer.status == 201
        if answer.status in (200, 201):
            self._learn(video, answer.document)
        elif answer.status == 402:
            self._end(video, End.UNPAID, {"state": "failed", "charge": answer.document["charge"]})
        elif answer.status == 410:
            self._gone(video, answer.document)
        elif answer.status in CONFLICTS:
            self.broken.append(
                f"POST of {video.id} was answered {answer.status} {answer.document.get('code')}"
            )
            self._abandon(video)

    # --- following ----------------------------------------------------------------------------------

    def _read(self, videos: list[Video]) -> None:
        by_id = {video.id: video for video in videos}
        answer = self.call("GET", f"/api/videos?ids={','.join(by_id)}")
        if answer.status != 200:
            for video in videos:
                video.reads_failed += 1
                self._wait(video, min(0.5 * 2.0 ** min(video.reads_failed, 5), SLOWEST_SECONDS))
            return
        for entry in answer.document["results"]:
            video = by_id[entry["id"]]
            video.reads_failed = 0
            if entry.get("code") != "not_received":
                self._learn(video, entry)
            elif video.acknowledged:
                self.broken.append(f"{video.id} was acknowledged, and is not known any more")
                self._wait(video, SLOWEST_SECONDS)
            elif video.posts <= RESEND_TIMES:
                self._post(video)
            else:
                self._abandon(video)

    def _learn(self, video: Video, document: dict[str, Any]) -> None:
        """Take in what the server says of an id that it knows, and act by the client's habit."""
        video.acknowledged = True
        if video.end in (End.ABANDONED, End.DELETED) and "state" in document:
            self.broken.append(f"{video.id} was {video.end.value} for ever, and then {document['state']}")
            return
        if document.get("code") in ("deleted", "abandoned"):
            self._gone(video, document)
            return
        told = {"state": document["state"], "charge": document["charge"]}
        if video.told.get("state") in ("completed", "failed") and told != video.told:
            self.broken.append(f"{video.id} was {video.told}, and then {told}")
        video.told = told
        self._wait(video, 1.0 if document["state"] != "processing" else 1.5)
        if document["state"] == "completed":
            self._finish(video)
        elif document["state"] == "failed":
            is_unpaid = (document["error"] or {}).get("code") == "insufficient_balance"
            self._end(video, End.UNPAID if is_unpaid else End.FAILED, told)
        elif video.order.habit is Habit.CANCEL and not video.has_cancelled:
            answer = self.call("POST", f"/api/videos/{video.id}/cancel")
            video.has_cancelled = answer.status in (200, 202, 409, 410)
        elif video.order.habit is Habit.REUSE and not video.has_reused:
            self._reuse(video)

    def _finish(self, video: Video) -> None:
        if video.order.habit is not Habit.DELETE:
            self._end(video, End.COMPLETED, video.told)
            return
        video.is_deleting = True
        answer = self.call("DELETE", f"/api/videos/{video.id}")
        if answer.status in (404, 409):
            self.broken.append(f"DELETE of the completed {video.id} was answered {answer.status}")
        elif answer.status == 204:
            self._end(video, End.DELETED, {"state": "deleted", "charge": video.told["charge"]})
        elif answer.status == 410:
            self._gone(video, answer.document)

    def _reuse(self, video: Video) -> None:
        """Another body under an id that is taken: refused, and nothing is charged for it."""
        other = {**video.order.body, "prompt": f"{video.order.body['prompt']} and a dog"}
        answer = self.call("POST", "/api/videos", other)
        video.has_reused = answer.status == 422
        if answer.status in (200, 201):
            self.broken.append(f"{video.id} was accepted with another body")

    def _abandon(self, video: Video) -> None:
        """Make sure that the id can never be accepted; only the 200 of this says "not charged"."""
        answer = self.call("POST", f"/api/videos/{video.id}/abandon")
        self._wait(video, 1.0)
        if answer.status == 200:
            self._end(video, End.ABANDONED, {"state": "abandoned", "charge": answer.document["charge"]})
        elif answer.status == 409:
            self._learn(video, answer.document["task"])
        elif answer.status == 410:
            self._gone(video, answer.document)

    def _gone(self, video: Video, document: dict[str, Any]) -> None:
        """410: deleted or abandoned, for ever."""
        told = {"state": document["code"], "charge": document["charge"]}
        if document["code"] == "deleted" and not video.is_deleting:
            self.broken.append(f"{video.id} is deleted, and its owner did not ask for it")
        self._end(video, End(document["code"]), told)

    def _end(self, video: Video, end: End, told: dict[str, Any]) -> None:
        """Final; what is told after that must be the same."""
        if video.end not in (None, end):
            self.broken.append(f"{video.id} ended {video.end} and then {end}")
        video.end, video.told = end, told

    def _wait(self, video: Video, seconds: float) -> None:
        video.read_at = time.monotonic() + seconds * self._chance.uniform(0.8, 1.2)
