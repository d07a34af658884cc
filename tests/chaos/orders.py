"""What is ordered: bodies, habits of clients and wishes to the simulator all follow from the seed."""

import random
import uuid
from dataclasses import dataclass
from enum import Enum
from typing import Any

NEVER_ENDS = "run_forever"


class Habit(Enum):
    """What a client does beside ordering and following."""

    FOLLOW = "follow"
    TWICE = "post three times at once"
    CANCEL = "cancel while it runs"
    DELETE = "delete once it is completed"
    ABANDON_FIRST = "abandon, then post"
    ABANDON_MEANWHILE = "abandon while posting"
    REUSE = "post another body under the same id"


HABITS = {
    Habit.FOLLOW: 60,
    Habit.TWICE: 10,
    Habit.CANCEL: 8,
    Habit.DELETE: 10,
    Habit.ABANDON_FIRST: 3,
    Habit.ABANDON_MEANWHILE: 5,
    Habit.REUSE: 4,
}
# Of the simulator (simulator/README.md): how often each is wished, of 200.
WISHES = {
    "": 110,
    # the answer to the submit
    "drop_after_accept=reset": 6,
    "drop_after_accept=close": 4,
    "drop_after_accept=half": 4,
    "drop_before_accept=reset": 3,
    "answer_after_accept=500": 4,
    "answer_after_accept=502": 4,
    "refuse=500": 3,
    "refuse=502": 2,
    "refuse=422": 4,
    "hang=5": 4,
    "hang_before_accept=5": 2,
    "delay=2": 4,
    "shape=no_id": 3,
    "drop_after_accept lookup=never webhook_none": 3,
    # the course of the job
    'fail="no luck"': 6,
    "refused_output": 3,
    "seconds=4": 5,
    "seconds=3 cancel=obey": 5,
    "status_404=2": 3,
    "status_502=3": 3,
    "status_429=2": 2,
    "result_500=2": 2,
    "file_403=1": 2,
    "file=html": 2,
    "url=missing url_reads=2": 2,
    # call-backs
    "webhook_none": 4,
    "webhook_copies=3 webhook_concurrent": 3,
    "webhook_early": 4,
    "webhook_signature=bad": 2,
}
MODELS = {"veo3.1": 70, "veo3.1-fast": 12, "kling-2.5-turbo": 8, "veo3.1-blind": 10}
NEVER_ENDING_SHARE = 1 / 400  # these wait for a person at the end, visibly


@dataclass(frozen=True)
class Order:
    id: str
    body: dict[str, Any]
    habit: Habit
    wish: str


def orders(*, seed: str, number: int) -> list[Order]:
    """The orders of one client."""
    chance = random.Random(seed)
    return [_order(chance, index) for index in range(number)]


def _order(chance: random.Random, index: int) -> Order:
    order_id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    wish = NEVER_ENDS if chance.random() < NEVER_ENDING_SHARE else _choice(chance, WISHES)
    habit = Habit.FOLLOW if wish == NEVER_ENDS else _choice(chance, HABITS)
    # The id in the prompt tells in the provider's journal whose job it is.
    prompt = f"video {index} of {order_id}" + (f" [sim: {wish}]" if wish else "")
    body = {"id": order_id, "model": _choice(chance, MODELS), "prompt": prompt}
    return Order(order_id, body, habit, wish)


def _choice(chance: random.Random, weights: dict[Any, int]) -> Any:
    return chance.choices(list(weights), weights=list(weights.values()))[0]
