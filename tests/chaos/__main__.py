"""`make chaos`: the product as its real processes, killed, frozen, cut off and starved while programs order.

Three phases. *Safety*: faults, until all were done and all was ordered. *Heal*: nothing is broken any more.
*Converge*: within CONVERGE_SECONDS every video has its end, or waits visibly for a person. Then all books are
compared. Exit status 1 on any violation; the folder with logs, data and journal is kept and named.

    python -m tests.chaos --seed 1 --tasks 1000 --kills 100 --redis 20 --postgres 5 --report FILE
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tests.chaos.clients import Client, Pace, Video
from tests.chaos.cluster import Cluster
from tests.chaos.fleet import Fleet
from tests.chaos.monkey import Fault, LossyNetwork, Monkey, plan
from tests.chaos.orders import NEVER_ENDS, Order, orders
from tests.chaos.report import Run, render
from tests.chaos.verify import verify
from tests.examples.lossy_proxy import LossyProxy

CLIENTS = 12
POOR = 2  # of them, whose money runs out
RICH_BALANCE, LATE_MONEY = 1_000_000, 60
POOR_BALANCE = 2  # for each order: about half of what they cost
CONVERGE_SECONDS = 60.0
CLIENT_SECONDS = 30.0  # for a client to hear of what ended in the last of these seconds
LONGEST_SECONDS, SECONDS_PER_ORDER = 240.0, 1.0  # of the first phase, on a busy machine
SLACK = 40  # orders that may be ahead of the faults
LOOK_SECONDS = 0.2
MAKE_OWNERS = """
from tests import makers
owners = [makers.make_owner(name=name, balance=balance) for name, balance in {owners!r}]
print(*(owner.key for owner in owners), sep="\\n")
"""


def main() -> int:
    given = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="oncereel-chaos-"))
    folder.chmod(0o711)  # PostgreSQL's own user must reach its folder
    liveness, alive = os.pipe()  # nobody writes: its end tells every guard that this program is gone
    cluster = Cluster(folder, liveness)
    run = Run(seed=given.seed, orders=given.tasks)
    print(f"chaos: seed {given.seed}; logs in {folder}", flush=True)
    fleet = None
    try:
        cluster.start()
        fleet = Fleet(
            folder, database_url=cluster.database_url, broker_url=cluster.broker_url, liveness=liveness
        )
        fleet.prepare()
        _play(given, run, cluster, fleet, folder)
    finally:
        if fleet is not None:
            fleet.close()
        cluster.close()
        os.close(alive)
    totals = {"SIGKILLs": "kill", "kills or flushes of Redis": "redis", "stops of PostgreSQL": "postgresql"}
    text = render(run, {name: run.count(kind) for name, kind in totals.items()})
    print(text)
    if given.report:
        given.report.write_text(text)
    if run.broken or run.verdict.broken:
        print(f"chaos: FAILED, seed {given.seed}; logs in {folder}", flush=True)
        return 1
    shutil.rmtree(folder)
    return 0


def _play(given: argparse.Namespace, run: Run, cluster: Cluster, fleet: Fleet, folder: Path) -> None:
    names = [f"chaos-{number}" for number in range(CLIENTS)]
    poor = POOR_BALANCE * given.tasks // CLIENTS
    balances = [str(poor if number < POOR else RICH_BALANCE) for number in range(CLIENTS)]
    tokens = fleet.python(MAKE_OWNERS.format(owners=list(zip(names, balances, strict=True)))).split()
    fleet.start_all()
    run.memory_first = fleet.memory()
    faults = plan(seed=given.seed, kills=given.kills, redis=given.redis, postgresql=given.postgres)
    pace = Pace(orders=given.tasks, faults=len(faults), slack=SLACK)
    network = LossyNetwork(given.seed)
    with LossyProxy(fleet.port, network) as proxy:
        port = int(proxy.url.rpartition(":")[2])
        clients = [
            Client(name=name, token=token, port=port, orders=theirs, pace=pace, seed=f"{given.seed}/{name}")
            for name, token, theirs in zip(names, tokens, _divided(given), strict=True)
        ]
        monkey = Monkey(seed=given.seed, fleet=fleet, cluster=cluster, proxy=proxy, pace=pace)
        try:
            _safety(given, run, clients, monkey, faults)
            _heal(run, fleet, network, monkey)
            run.converge_seconds = _converge(clients, run)
        finally:
            _stop(clients)
        # What was refused for want of money stays refused, and what has ended stays as it is.
        fleet.manage("top_up", names[0], str(LATE_MONEY), "--reference", "late-money")
        monkey.deliver_all_late()
        _keep(clients, folder)
        run.verdict = verify(fleet=fleet, clients=clients)
        run.lost = Counter(f"{method} {fate.value}" for method, fate in proxy.fates)
    run.faults, run.missed, run.restarts = monkey.done, monkey.missed, fleet.deaths
    run.statuses = sum((client.statuses for client in clients), Counter[str]())
    run.memory_last = fleet.memory()
    run.broken += _not_reached(given, run, clients)


def _safety(
    given: argparse.Namespace, run: Run, clients: list[Client], monkey: Monkey, faults: list[Fault]
) -> None:
    """Faults and orders, in step, until all were done and all is ordered."""
    began = time.monotonic()
    until = began + LONGEST_SECONDS + given.tasks * SECONDS_PER_ORDER
    for client in clients:
        client.start()
    monkey.run(faults, until=until)
    monkey.pace.let_all_go()
    while not monkey.pace.is_over and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    run.safety_seconds = time.monotonic() - began


def _heal(run: Run, fleet: Fleet, network: LossyNetwork, monkey: Monkey) -> None:
    """End all faults, and see every process running again."""
    began = time.monotonic()
    network.is_lossy = False
    monkey.thaw_all()
    fleet.wait_healed()
    fleet.provider.clear_faults()
    run.heal_seconds = time.monotonic() - began


def _divided(given: argparse.Namespace) -> list[list[Order]]:
    """The orders of each client."""
    shares = [given.tasks // CLIENTS + (number < given.tasks % CLIENTS) for number in range(CLIENTS)]
    return [orders(seed=f"{given.seed}/orders/{number}", number=share) for number, share in enumerate(shares)]


def _converge(clients: list[Client], run: Run) -> float:
    """Wait until every client knows the end of every video; the seconds that took."""
    began = time.monotonic()
    while left := [video for client in clients for video in _unsettled(client)]:
        if time.monotonic() - began > CONVERGE_SECONDS + CLIENT_SECONDS:
            break
        time.sleep(LOOK_SECONDS)
    seconds = time.monotonic() - began
    if left or seconds > CONVERGE_SECONDS:
        run.broken.append(f"{len(left)} videos were open {seconds:.0f} s after healing, such as {left[:5]}")
    return seconds


def _stop(clients: list[Client]) -> None:
    for client in clients:
        client.stopped.set()
    for client in clients:
        if client.is_alive():
            client.join()


def _unsettled(client: Client) -> list[Video]:
    return [video for video in client.open_videos() if video.order.wish != NEVER_ENDS]


def _not_reached(given: argparse.Namespace, run: Run, clients: list[Client]) -> list[str]:
    """Counts that were asked for and did not happen: a run that was too gentle proves nothing."""
    wanted = {"kill": given.kills, "redis": given.redis, "postgresql": given.postgres}
    missing = [
        f"only {run.count(kind)} of {times} faults: {kind}"
        for kind, times in wanted.items()
        if run.count(kind) < times
    ]
    ordered = sum(len(client.videos) for client in clients)
    return missing if ordered == given.tasks else [*missing, f"only {ordered} of {given.tasks} orders"]


def _keep(clients: list[Client], folder: Path) -> None:
    """What each client knows, a line a video, beside the logs."""
    with (folder / "clients.jsonl").open("w") as file:
        for client in clients:
            for video in client.videos.values():
                line = {"client": client.name, **asdict(video)}
                file.write(json.dumps(line, default=str) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seed", default="1")
    parser.add_argument("--tasks", type=int, default=1000, help="videos that are ordered")
    parser.add_argument("--kills", type=int, default=100, help="SIGKILLs")
    parser.add_argument("--redis", type=int, default=20, help="times that Redis is killed or flushed")
    parser.add_argument("--postgres", type=int, default=5, help="times that PostgreSQL is stopped at once")
    parser.add_argument("--report", type=Path, help="a file for the report, as Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
