"""Counts the interleavings that the tests played, over all test processes, for the last lines of a run."""

import pytest


def summarise(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many orders there were: an exploration that found none would pass as well."""
    counts = [
        dict(report.user_properties)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call" and "interleavings" in dict(report.user_properties)
    ]
    if counts:
        terminalreporter.write_line(
            f"interleavings: {sum(item['interleavings'] for item in counts)} schedules "
            f"of {len(counts)} pairs, {sum(item['interleaving violations'] for item in counts)} violations"
        )
