"""Write the counts and the differences of docs/torch_suite.md from what tools/torch_suite.py found."""

from __future__ import annotations

from collections.abc import Mapping

OUTCOMES = ("passed", "failed", "skipped")


def counts(found: Mapping[str, Mapping]) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped."""
    return {wanted: sum(test["outcome"] == wanted for test in found.values()) for wanted in OUTCOMES}
