"""The world that rules are broken in. Building it takes a second, so a test breaks many rules in one."""

import pytest

from tests.invariants.world import World, build_world
from tests.simulator_process import SimulatorProcess


@pytest.fixture
def world(db: None, simulator: SimulatorProcess) -> World:
    return build_world()
