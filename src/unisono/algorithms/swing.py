"""Swing: partners to the right and left in turn, at distances 1, 1, 3, 5, 11, ...: hops on a ring stay short."""

from unisono.algorithms.arithmetic import largest_power_of_two
from unisono.algorithms.declaration import Steps, algorithm
from unisono.algorithms.folding import folded_all_reduce
from unisono.collectives import all_reduce
from unisono.schedule import backwards, recv, send


def partner(rank: int, step: int, size: int) -> int:
    """Return the partner of a rank in a step: even ranks swing one way, odd ranks the other."""
    distance = ((2 << step) + (-1 if step % 2 else 1)) // 3  # 1, 1, 3, 5, 11, ...
    rightwards = (rank + step) % 2 == 0
    return (rank + distance if rightwards else rank - distance) % size


def reached(rank: int, first: int, size: int) -> list[int]:
    """Return the ranks whose chunks pass through a rank if only the steps from ``first`` on run."""
    ranks = [rank]
    for step in range(first, size.bit_length() - 1):
        ranks += [partner(peer, step, size) for peer in ranks]
    return ranks


@algorithm(all_reduce, chunks=largest_power_of_two)
def swing(rank: int, size: int) -> Steps:
    """Rabenseifner's algorithm with partners that are closer on a ring or torus (De Sensi et al., 2024)."""
    core = largest_power_of_two(size)
    yield from folded_all_reduce(swing_both_ways, rank, size, core, chunks=core)


def swing_both_ways(rank: int, size: int) -> Steps:
    """All-reduce = reduce-scatter (the all-gather run backwards) + all-gather."""
    yield from backwards(swing_all_gather(rank, size))
    yield from swing_all_gather(rank, size)


def swing_all_gather(rank: int, size: int) -> Steps:
    """Run Swing itself, for a power of two: far partners first; the number of chunks held doubles."""
    for step in reversed(range(size.bit_length() - 1)):
        peer = partner(rank, step, size)
        yield send(reached(rank, step + 1, size), dst=peer), recv(reached(peer, step + 1, size), src=peer)
