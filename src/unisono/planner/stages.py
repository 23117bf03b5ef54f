"""Stages of a pipeline: how many layers each holds, so that the slowest takes as little time as possible."""

from __future__ import annotations

from functools import cache


@cache
def layers_of_stages(layers: int, stages: int, head: float) -> tuple[int, ...]:
    """Return the number of layers of each stage; the last one also holds the head, as long as ``head`` layers."""
    if stages == 1:
        return (layers,)
    best: tuple[float, int] | None = None
    for most in range(-(-layers // stages), layers + 1):
        last = max(0, layers - most * (stages - 1))
        slowest = max(most, last + head)
        if best is None or slowest < best[0] - 1e-9:
            best = (slowest, last)
    assert best is not None
    last = best[1]
    base, longer = divmod(layers - last, stages - 1)
    return (*(base + (number < longer) for number in range(stages - 1)), last)
