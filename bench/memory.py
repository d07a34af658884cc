"""Memory of every process after many tasks beside after few: it must not grow with what was done."""

from collections.abc import Iterable

from bench import processes
from bench.figures import Figure
from bench.installation import Installation
from bench.machine import Plan
from bench.pipeline import LINES, run, start_all
from bench.submit import OWNERS

FEW = 100
BATCH = 500  # tasks ordered before the next are: workers keep up, as they do in a sound installation
TARGET = 1.2  # Python's allocator keeps what one busy moment needed


def measure(plan: Plan) -> list[Figure]:
    with plan.simulator() as simulator, plan.installation("memory", simulator=simulator) as product:
        with product.inside() as inside:
            owners = inside.call("bench.owners:make_owners", count=OWNERS)
        start_all(product, plan.broker)
        run(product, owners, FEW)
        few = {name: _mib(product, name) for name in LINES}
        for done in range(FEW, plan.tasks, BATCH):
            run(product, owners, min(BATCH, plan.tasks - done))
        many = {name: _mib(product, name) for name in LINES}
        product.manage("audit")
        return [
            Figure(
                name=f"memory_{name}",
                value=sum(many[name]),
                reference=sum(few[name]),
                unit="MiB",
                at_most=TARGET,
                note=(
                    f"after {plan.tasks} tasks beside {FEW}; each process: "
                    f"{_shown(many[name])}, before {_shown(few[name])}"
                ),
            )
            for name in LINES
        ]


def _mib(product: Installation, name: str) -> list[float]:
    return [used.pss_mib for used in processes.of_group(product.group(name))]


def _shown(sizes: Iterable[float]) -> str:
    return " ".join(f"{size:.0f}" for size in sizes)
