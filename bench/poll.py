"""Status reads of one polling worker beside a bare async loop that asks the same provider the same."""

from bench.figures import Figure, interleaved
from bench.machine import Plan

RUNNING = 200  # two full rounds of a worker


def measure(plan: Plan) -> list[Figure]:
    with plan.simulator() as simulator, plan.installation("poll", simulator=simulator) as product:
        with product.inside() as inside:
            inside.call("bench.poll_inside:start_jobs", count=RUNNING)
            sides = interleaved(
                lambda: float(inside.call("bench.poll_inside:poll", seconds=plan.seconds)),
                lambda: float(inside.call("bench.poll_inside:read_bare", seconds=plan.seconds)),
                plan.rounds,
            )
        return [
            Figure(
                name="poll",
                value=sides.value,
                reference=sides.reference,
                unit="reads/s",
                at_least=0.6,
                note=f"{RUNNING} running jobs, the same HTTP library and connections; {sides.spread}",
            )
        ]
