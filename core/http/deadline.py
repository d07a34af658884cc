"""A deadline on a clock that goes on while the machine is suspended.

Note [Boot clock]
A sender that sleeps through its lease must notice it. `time.monotonic` stands still while a machine is
suspended (CLOCK_MONOTONIC of Linux), the wall clock may be set back; CLOCK_BOOTTIME does neither.
"""

import time
from collections.abc import Callable

Clock = Callable[[], float]


def boot_clock() -> float:
    """Seconds since boot, suspended time included where the system has such a clock."""
    return time.clock_gettime(_CLOCK_ID)


class Deadline:
    """A point in time, `seconds` from now on the given clock."""

    def __init__(self, seconds: float, clock: Clock = boot_clock) -> None:
        self._clock = clock
        self._at = clock() + seconds

    def remaining(self) -> float:
        """Seconds left; never below zero."""
        return max(0.0, self._at - self._clock())

    @property
    def passed(self) -> bool:
        """Whether the point in time has come."""
        return self._clock() >= self._at


_CLOCK_ID: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
