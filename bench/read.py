"""Status reads beside an empty view behind the same middleware and token check, in the same process."""

from functools import partial
from random import choice

from bench import load
from bench.figures import Figure, interleaved
from bench.machine import Plan

CONCURRENCY = 8
VIDEOS = 50


def measure(plan: Plan) -> list[Figure]:
    with plan.simulator() as simulator, plan.installation("read", simulator=simulator) as product:
        with product.inside() as inside:
            made = inside.call("bench.owners:make_completed", count=VIDEOS)
        product.start("web")
        key = made["key"]
        loads: list[load.Load] = []

        def slice_of(paths: list[str]) -> float:
            done = load.drive(
                product.port,
                lambda: load.get(choice(paths), key),
                connections=CONCURRENCY,
                seconds=plan.seconds,
            )
            done.require_only(200)
            loads.append(done)
            return done.per_second

        videos = [f"/api/videos/{client_id}" for client_id in made["ids"]]
        figures = []
        for name, path, what, target in (
            ("read", "/bench/empty", "a plain Django view", 0.7),
            ("read_beside_api_view", "/bench/empty-api", "an empty view of the API framework", None),
        ):
            sides = interleaved(partial(slice_of, videos), partial(slice_of, [path]), plan.rounds)
            figures.append(
                Figure(
                    name=name,
                    value=sides.value,
                    reference=sides.reference,
                    unit="1/s",
                    at_least=target,
                    note=f"beside {what}; {sides.spread}",
                )
            )
        own_share = sum(done.cpu_seconds for done in loads) / sum(done.seconds for done in loads)
        print(f"read: the load itself used {own_share:.0%} of one core", flush=True)
        return figures
