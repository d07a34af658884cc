"""Every order of the steps of two operations, each played from the start on fresh rows.

A depth-first search. Of orders that differ only by steps that may change places (Note [Steps that change
places]) one is played: where two steps that keep their places met, the other order is tried too ("dynamic
partial-order reduction"), and a step that was tried already sleeps until something it depends on happened.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.concurrency.footprints import Footprint, depends
from tests.concurrency.interleaving import Stage, Step


@dataclass
class Point:
    """A point of an order where one of the ready players was chosen."""

    ready: dict[int, Step]
    chosen: int
    asleep: dict[int, Footprint]
    wanted: set[int]
    tried: dict[int, Footprint] = field(default_factory=dict)
    released: frozenset[int] = frozenset()  # who waited for a lock and got it by this step

    @property
    def footprint(self) -> Footprint:
        return self.ready[self.chosen].footprint

    def choose_another(self) -> bool:
        """Take the next choice; False when there is none left."""
        self.tried[self.chosen] = self.footprint
        left = sorted(self.wanted - self.tried.keys() - self.asleep.keys())
        if left:
            self.chosen = left[0]
        return bool(left)

    def asleep_after(self) -> dict[int, Footprint]:
        known = {**self.asleep, **self.tried}
        return {
            player: footprint
            for player, footprint in known.items()
            if player != self.chosen and not depends(footprint, self.footprint)
        }


@dataclass(frozen=True, kw_only=True)
class Played:
    """One order and how both operations ended."""

    order: tuple[tuple[int, str], ...]
    outcomes: tuple[Any, Any]
    has_deadlock: bool
    is_repeat: bool  # the same as an earlier one, but for steps that changed places
    had_a_wait: bool


def explore(
    stage: Stage, prepare: Callable[[], Sequence[Callable[[], Any]]], *, is_reduced: bool = True
) -> Iterator[Played]:
    """Play every order. `prepare` makes fresh rows and gives the two operations on them."""
    path: list[Point] = []
    while True:
        yield _play(stage, prepare(), path, is_reduced=is_reduced)
        if is_reduced:
            _want_the_other_orders(path)
        while path and not path[-1].choose_another():
            path.pop()
        if not path:
            return


def _play(
    stage: Stage, operations: Sequence[Callable[[], Any]], path: list[Point], *, is_reduced: bool
) -> Played:
    stage.begin(operations)
    order: list[tuple[int, str]] = []
    is_repeat, had_a_wait, deep = False, False, 0
    while ready := stage.ready:
        if deep < len(path):
            point: Point | None = path[deep]
            assert point is not None and _same(point.ready, ready), f"not as before at {order}: {ready}"
        else:
            point = None if is_repeat else _next_point(path, ready, is_reduced=is_reduced)
            if point is None:
                is_repeat = True  # played to its end, so that both operations come to theirs
            else:
                path.append(point)
        chosen = point.chosen if point is not None else min(ready)
        order.append((chosen, ready[chosen].label))
        released = stage.step(chosen)
        had_a_wait |= any(player.waits for player in stage.players)
        if point is not None:
            point.released, deep = released, deep + 1
    first, second = (player.outcome for player in stage.players)
    return Played(
        order=tuple(order),
        outcomes=(first, second),
        has_deadlock=stage.has_deadlock,
        is_repeat=is_repeat,
        had_a_wait=had_a_wait,
    )


def _same(before: dict[int, Step], now: dict[int, Step]) -> bool:
    return {player: step.label for player, step in before.items()} == {
        player: step.label for player, step in now.items()
    }


def _next_point(path: list[Point], ready: dict[int, Step], *, is_reduced: bool) -> Point | None:
    """A new point at the end of the path; None when all that is ready sleeps."""
    asleep = path[-1].asleep_after() if path and is_reduced else {}
    awake = sorted(ready.keys() - asleep.keys())
    if not awake:
        return None
    last = path[-1].chosen if path else 0
    chosen = last if last in awake else awake[0]
    return Point(
        ready=dict(ready), chosen=chosen, asleep=asleep, wanted={chosen} if is_reduced else set(ready)
    )


def _want_the_other_orders(path: list[Point]) -> None:
    """Where two steps that keep their places met with nothing between them that orders them anyway, want the
    later one to come first.
    """
    seen: list[list[int]] = []  # for each step, the last step of either player that comes before it for sure
    known = [[-1, -1], [-1, -1]]
    for later, point in enumerate(path):
        before = list(known[point.chosen])
        other = 1 - point.chosen
        for earlier in range(later - 1, -1, -1):
            if path[earlier].chosen != other or earlier <= before[other]:
                continue
            if depends(path[earlier].footprint, point.footprint):
                if point.chosen in path[earlier].ready:  # not while it waits for a lock
                    path[earlier].wanted.add(point.chosen)
                before = [max(pair) for pair in zip(before, seen[earlier], strict=True)]
        before[point.chosen] = later
        seen.append(before)
        known[point.chosen] = list(before)
        for waiter in point.released:
            known[waiter] = [max(pair) for pair in zip(known[waiter], before, strict=True)]
