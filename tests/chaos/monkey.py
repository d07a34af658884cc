"""What goes wrong, and when: a list of faults that follows from the seed, done one after the other."""

import contextlib
import random
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.chaos.clients import Pace
from tests.chaos.cluster import Cluster
from tests.chaos.fleet import LEASE_SECONDS, Fleet
from tests.chaos.guarded import send
from tests.examples.lossy_proxy import Fate, LossyProxy, Request

FROZEN_SECONDS = LEASE_SECONDS + 2.0  # longer than a lease: another worker has the task by then
DOWN_SECONDS = (0.3, 1.5)  # how long a service stays away
HUNG_SECONDS = 2.0
TARGET_SECONDS = 20.0  # how long a victim is waited for, such as a worker that is only starting
PACE_SECONDS = 0.1
PRINTED_EVERY = 25  # faults
# Of 100 SIGKILLs. A pool process is there again at once; a whole service needs seconds.
KILLS = {
    "a pool process of Celery": 48,
    "a worker of gunicorn": 16,
    "Celery with its pool": 9,
    "gunicorn with its workers": 7,
    "beat": 6,
    "the simulator": 7,
    "a backend of PostgreSQL": 7,
}
REDIS = {"Redis killed": 1, "Redis flushed": 1}
FREEZES = {
    "a pool process of Celery": 3,
    "Celery with its pool": 2,
    "a worker of gunicorn": 2,
    "gunicorn with its workers": 1,
    "beat": 1,
}
HANGS = {"Redis hung": 1}
# What the provider does to the next few requests, whosever they are (simulator/README.md).
SCRIPTED: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("submit", {"answer": 429, "retry_after": 1}, 6),
    ("submit", {"answer": 503}, 3),
    ("submit", {"answer": 401}, 2),
    ("submit", {"drop_after_accept": "reset"}, 4),
    ("submit", {"drop_before_accept": "close"}, 3),
    ("submit", {"answer_after_accept": 504}, 3),
    ("status", {"502": True}, 20),
    ("status", {"reset": True}, 20),
    ("status", {"html": True}, 10),
    ("result", {"500": True}, 5),
    ("file", {"reset": True}, 5),
    ("lookup", {"500": True}, 3),
    ("webhook", {"none": True}, 10),
    ("cancel", {"500": True}, 2),
)
ANSWER_LOST, REQUEST_LOST = 0.08, 0.03  # of the requests of clients


@dataclass(frozen=True)
class Target:
    """Which services are meant, and whether one of the processes they forked or all of them."""

    services: tuple[str, ...]
    is_child: bool = False


CELERY = ("worker-1", "worker-2")
TARGETS = {
    "a pool process of Celery": Target(CELERY, is_child=True),
    "a worker of gunicorn": Target(("web",), is_child=True),
    "Celery with its pool": Target(CELERY),
    "gunicorn with its workers": Target(("web",)),
    "beat": Target(("beat",)),
    "the simulator": Target(("simulator",)),
}


@dataclass(frozen=True)
class Fault:
    kind: str  # kill, redis, postgresql, freeze, hang, scripted, late
    what: str


def plan(*, seed: str, kills: int, redis: int, postgresql: int) -> list[Fault]:
    """All faults of a run, in their order: what is asked for, freezes, scripted faults, late requests."""
    chance = random.Random(seed)
    faults = [
        *(Fault("kill", what) for what in _spread(KILLS, kills)),
        *(Fault("redis", what) for what in _spread(REDIS, redis)),
        *(Fault("hang", what) for what in _spread(HANGS, max(1, redis // 10))),
        *(Fault("freeze", what) for what in _spread(FREEZES, max(1, kills // 12))),
        *(Fault("scripted", str(index % len(SCRIPTED))) for index in range(kills // 4)),
        *(Fault("late", "a lost request arrives late") for _ in range(kills // 5)),
    ]
    chance.shuffle(faults)
    # Recovery takes seconds, so that restarts of the database are spread evenly.
    step = len(faults) // max(1, postgresql)
    for number in range(postgresql):
        faults.insert(number * (step + 1) + step // 2, Fault("postgresql", "PostgreSQL stopped at once"))
    return faults


def _spread(weights: dict[str, int], number: int) -> list[str]:
    """`number` names in the proportion of their weights."""
    total = sum(weights.values())
    names = list(weights)
    bounds = [sum(list(weights.values())[: index + 1]) for index in range(len(names))]
    places = [(place + 0.5) * total / number for place in range(number)]
    return [
        next(name for name, bound in zip(names, bounds, strict=True) if place < bound) for place in places
    ]


class LossyNetwork:
    """The rule of the proxy between clients and product: loses a share of requests and answers."""

    def __init__(self, seed: str) -> None:
        self.is_lossy = True
        self._chance = random.Random(seed)

    def __call__(self, request: Request) -> Fate:
        drawn = self._chance.random()
        if not self.is_lossy or drawn > ANSWER_LOST + REQUEST_LOST:
            return Fate.PASSED
        return Fate.REQUEST_LOST if drawn < REQUEST_LOST else Fate.ANSWER_LOST


class Monkey:
    """Does the faults. `done` counts what really happened; `missed` what found no victim."""

    def __init__(self, *, seed: str, fleet: Fleet, cluster: Cluster, proxy: LossyProxy, pace: Pace) -> None:
        self.done: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self.pace = pace
        self._fleet, self._cluster, self._proxy = fleet, cluster, proxy
        self._frozen: dict[str, list[int]] = {}
        self._thaws: list[threading.Timer] = []
        self._delivered = 0

    def run(self, faults: list[Fault], *, until: float) -> None:
        """All faults, in step with the orders; ends early at `until` on the monotonic clock."""
        left = deque(faults)
        while left and time.monotonic() < until:
            if not self.pace.may_fault():
                time.sleep(PACE_SECONDS)
                continue
            fault = left.popleft()
            if self._do(fault):
                self.done[f"{fault.kind}: {self._named(fault)}"] += 1
                self.pace.count_fault()
                if len(left) % PRINTED_EVERY == 0:
                    print(f"chaos: {len(faults) - len(left)} of {len(faults)} faults", flush=True)
            else:
                self.missed[f"{fault.kind}: {self._named(fault)}"] += 1
                left.append(fault)  # there was no victim; later there will be

    def thaw_all(self) -> None:
        for timer in self._thaws:
            timer.cancel()
        for name in list(self._frozen):
            self._thaw(name)

    def deliver_all_late(self) -> None:
        """What the network held back arrives at last."""
        while self._deliver_late():
            self.done["late: a lost request arrives late"] += 1

    def _named(self, fault: Fault) -> str:
        if fault.kind != "scripted":
            return fault.what
        on, settings, _ = SCRIPTED[int(fault.what)]
        return f"{on} {', '.join(f'{name}={value}' for name, value in settings.items())}"

    def _do(self, fault: Fault) -> bool:
        doing: dict[str, Callable[[str], bool]] = {
            "kill": self._kill,
            "redis": self._disturb_redis,
            "hang": self._hang_redis,
            "postgresql": self._restart_postgresql,
            "freeze": self._freeze,
            "scripted": self._script,
            "late": lambda _: self._deliver_late(),
        }
        return doing[fault.kind](fault.what)

    # --- processes ----------------------------------------------------------------------------------

    def _kill(self, what: str) -> bool:
        if what == "a backend of PostgreSQL":
            return self._cluster.kill_backend(self._chance)
        name = self._victim(what)
        if name is None:
            return False
        process = self._fleet.processes[name]
        if not TARGETS[what].is_child:
            process.kill()
            return True
        return any(send(pid, signal.SIGKILL) for pid in self._one_of(process.children()))

    def _freeze(self, what: str) -> bool:
        name = self._victim(what)
        if name is None:
            return False
        process = self._fleet.processes[name]
        pids = self._one_of(process.children()) if TARGETS[what].is_child else process.everything()
        stopped = [pid for pid in pids if send(pid, signal.SIGSTOP)]
        if stopped:
            self._frozen[name] = stopped
            timer = threading.Timer(FROZEN_SECONDS, self._thaw, [name])
            timer.start()
            self._thaws.append(timer)
        return bool(stopped)

    def _thaw(self, name: str) -> None:
        for pid in self._frozen.pop(name, []):
            send(pid, signal.SIGCONT)

    def _victim(self, what: str) -> str | None:
        """A service that is whole and not frozen; waits for one."""
        until = time.monotonic() + TARGET_SECONDS
        while time.monotonic() < until:
            names = [name for name in TARGETS[what].services if name not in self._frozen]
            whole = [name for name in names if self._fleet.is_whole(name)]
            if whole:
                return self._chance.choice(whole)
            time.sleep(PACE_SECONDS)
        return None

    def _one_of(self, pids: list[int]) -> list[int]:
        return [self._chance.choice(pids)] if pids else []

    # --- services -----------------------------------------------------------------------------------

    def _disturb_redis(self, what: str) -> bool:
        if what == "Redis flushed":
            self._cluster.flush()
            return True
        self._cluster.redis.bury()
        time.sleep(self._chance.uniform(*DOWN_SECONDS))
        self._cluster.start_redis()
        return True

    def _hang_redis(self, what: str) -> bool:
        pid = self._cluster.redis.pid()
        if pid is None or not send(pid, signal.SIGSTOP):
            return False
        time.sleep(HUNG_SECONDS)
        return send(pid, signal.SIGCONT)

    def _restart_postgresql(self, what: str) -> bool:
        self._cluster.stop_postgresql()
        time.sleep(self._chance.uniform(*DOWN_SECONDS))
        self._cluster.start_postgresql()
        return True

    def _script(self, index: str) -> bool:
        on, settings, times = SCRIPTED[int(index)]
        with contextlib.suppress(OSError):  # it was killed a moment ago
            self._fleet.provider.add_fault(settings, on=on, times=times)
            return True
        return False

    def _deliver_late(self) -> bool:
        """A request that the network held back arrives now, long after its client gave it up as lost."""
        if self._delivered >= len(self._proxy.lost):
            return False
        request = self._proxy.lost[self._delivered]
        self._delivered += 1
        with contextlib.suppress(OSError):
            self._proxy.deliver(request)
        return True
