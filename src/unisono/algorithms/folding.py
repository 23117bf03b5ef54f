"""Extends an algorithm for some sizes to all sizes.

*Core*: the ranks 0..core-1 that run the algorithm itself. *Extra*: a rank beyond the core. Extra r relies on its
partner, rank r - core, which acts for both of them. The core must be at least half of the ranks.
"""

from collections.abc import Callable

from unisono.algorithms.declaration import Steps
from unisono.schedule import mapped, recv, recv_reduce, send


def folded_all_reduce(program: Callable[[int, int], Steps], rank: int, size: int, core: int, chunks: int) -> Steps:
    """Send the vectors of extras to their partners first, and the result back to them last."""
    everything, extra = range(chunks), rank + core
    if rank >= core:
        yield send(everything, dst=rank - core)
        yield recv(everything, src=rank - core)
        return
    if extra < size:
        yield recv_reduce(everything, src=extra)
    yield from program(rank, core)
    if extra < size:
        yield send(everything, dst=extra)


def folded_all_gather(program: Callable[[int, int], Steps], rank: int, size: int, core: int) -> Steps:
    """Send the blocks of extras to their partners first, and all other blocks back to them last."""
    extra = rank + core
    if rank >= core:
        yield send(rank, dst=rank - core)
        yield recv([block for block in range(size) if block != rank], src=rank - core)
        return
    if extra < size:
        yield recv(extra, src=extra)
    if core == size:
        yield from program(rank, core)
        return
    # Core rank r acts for block r and, where it has an extra, for block r + core.
    yield from mapped(program(rank, core), chunks=[range(block, size, core) for block in range(core)])
    if extra < size:
        yield send([block for block in range(size) if block != extra], dst=extra)
