"""Make an algorithm for some sizes serve them all.

*Core*: the ranks 0..core-1 that play the algorithm itself. *Extra*: a rank beyond the core. Extra r leans on its
partner, rank r - core, which speaks for both of them. The core must be at least half of the ranks.
"""

from collections.abc import Callable

from unisono.algorithms.declaration import Steps
from unisono.schedule import mapped, recv, recv_reduce, send


def largest_power_of_two(size: int) -> int:
    """Return the largest power of two that is not above ``size``."""
    return 1 << size.bit_length() - 1


def folded_all_reduce(program: Callable[[int, int], Steps], rank: int, size: int, core: int, chunks: int) -> Steps:
    """Extras give their vector to the partner first and get the result from it last."""
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
    """Extras give their block to the partner first and get all the others from it last."""
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
    # Core rank r speaks for block r and, where it has an extra, for block r + core.
    yield from mapped(program(rank, core), chunks=[range(block, size, core) for block in range(core)])
    if extra < size:
        yield send([block for block in range(size) if block != extra], dst=extra)
