"""How long to wait before the next try or look. Pure; chance comes in as a number between 0 and 1."""

from collections.abc import Callable

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
LONGEST_TOLD_SECONDS = 900.0  # a longer Retry-After is a mistake or an outage; asking again is harmless
JITTER = 0.2  # ± this share, so that a thousand tasks do not come back in the same second

Chance = Callable[[], float]


def jittered(seconds: float, chance: Chance) -> float:
    return seconds * (1 - JITTER + 2 * JITTER * chance())


def pause_after(*, tries: int, told_seconds: float | None, chance: Chance) -> float:
    """Seconds before try number `tries` + 1 after a refusal or a failed connection.

    What the provider told is the least; without a word the pause doubles up to LONGEST_PAUSE_SECONDS.
    """
    growing = min(FIRST_PAUSE_SECONDS * 2 ** min(tries, 10), LONGEST_PAUSE_SECONDS)
    pause = jittered(growing, chance)
    return pause if told_seconds is None else max(pause, min(told_seconds, LONGEST_TOLD_SECONDS))


def next_read_in(*, age_seconds: float, first: float, slowest: float, chance: Chance) -> float:
    """Seconds until a running job is read again: often while it is young, then ever more rarely.

    A read costs the same whether it brings news or not, so the pause grows with the age: an eighth of it,
    between `first` and `slowest`.
    """
    return jittered(min(max(age_seconds / 8, first), slowest), chance)


def next_unknown_check_in(*, age_seconds: float, chance: Chance) -> float:
    """Seconds until a task of unknown fate is looked into again: look-ups lag, call-backs come by
    themselves.
    """
    return jittered(min(max(age_seconds / 4, 5.0), 300.0), chance)
