"""Ten pairs of operations on one id, statement by statement, in every order, on real PostgreSQL."""

from typing import Any

import pytest

from tests.concurrency.interleaving import Stage
from tests.concurrency.orders import Played, explore
from tests.concurrency.pairs import PAIRS, Case, Pair, do_abandon, fresh, named
from tests.concurrency.removed_guards import REMOVED, Removed, database_without
from tests.invariants_check import assert_invariants
from tests.simulator_process import SimulatorProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql, pytest.mark.timeout(300)]


def play_pair(pair: Pair, stage: Stage, *, until_broken: bool = False) -> tuple[list[Played], list[str]]:
    """Every order of a pair, and a line for each rule that one of them broke."""
    cases: list[Case] = []

    def prepare() -> Any:
        cases.append(pair.prepare())
        return [lambda: pair.first(cases[-1]), lambda: pair.second(cases[-1])]

    orders: list[Played] = []
    wrong: list[str] = []
    for played in explore(stage, prepare):
        orders.append(played)
        found = ["deadlock"] if played.has_deadlock else []
        found += pair.rule(cases[-1], played.outcomes)
        wrong += [f"{rule}: {played.outcomes!r} after {played.order}" for rule in found]
        if wrong and until_broken:
            break
    return orders, wrong


@pytest.mark.parametrize("name", PAIRS)
def test_in_every_order_the_pair_keeps_its_rule(
    name: str, stage: Stage, request: pytest.FixtureRequest, network: SimulatorProcess
) -> None:
    orders, wrong = play_pair(PAIRS[name], stage)
    distinct = [played for played in orders if not played.is_repeat]
    request.node.user_properties += [
        ("interleavings", len(distinct)),
        ("interleaving violations", len(wrong)),
    ]
    assert wrong == [], "\n".join(wrong[:20])
    assert_invariants(network)
    assert len(distinct) > 1


@pytest.mark.parametrize("removed", REMOVED, ids=[item[0] for item in REMOVED])
def test_without_its_guard_some_order_of_the_pair_breaks_the_rule(
    removed: Removed, stage: Stage, network: SimulatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where several guards back each other up, all of them are removed."""
    name, remove, constraints, triggers, rule = removed
    with database_without(constraints=constraints, triggers=triggers), monkeypatch.context() as patch:
        remove(patch)
        _, wrong = play_pair(PAIRS[name], stage, until_broken=True)
    assert any(line.startswith(f"{rule}:") for line in wrong), wrong


def test_the_reduction_loses_no_outcome(stage: Stage) -> None:
    """Two fences of one id, in all orders there are and in the reduced ones: the same ends are met."""

    def ends(*, is_reduced: bool) -> tuple[int, set[Any]]:
        case = fresh()
        met = set()

        def prepare() -> Any:
            nonlocal case
            case = Case(owner=case.owner)
            return [lambda: do_abandon(case), lambda: do_abandon(case)]

        count = 0
        for played in explore(stage, prepare, is_reduced=is_reduced):
            count += 1
            kinds = tuple(named(outcome) for outcome in played.outcomes)
            met.add((kinds, len(case.claims), played.had_a_wait))
        return count, met

    all_orders, all_ends = ends(is_reduced=False)
    reduced_orders, reduced_ends = ends(is_reduced=True)
    assert reduced_ends == all_ends
    assert reduced_orders < all_orders
