"""The dissemination family: each rank sends to the ranks at distance 1, 2, 4, ..., wrapping around.

ceil(log2 p) steps at any size, not only at powers of two.
"""

from unisono.algorithms.arithmetic import powers_of_two_below
from unisono.algorithms.declaration import Steps, algorithm, one, one_per_rank
from unisono.collectives import all_gather, all_to_all, barrier, reduce_scatter
from unisono.schedule import backwards, copy, recv, recv_reduce, send


@algorithm(all_gather, chunks=one_per_rank)
def bruck_all_gather(rank: int, size: int) -> Steps:
    """Send all blocks held so far to the rank 1, 2, 4, ... to the left; the last time only the missing ones.

    (Bruck et al., 1997.)
    """
    for distance in powers_of_two_below(size):
        amount = min(distance, size - distance)
        yield (
            send([(rank + block) % size for block in range(amount)], dst=(rank - distance) % size),
            recv([(rank + distance + block) % size for block in range(amount)], src=(rank + distance) % size),
        )


@algorithm(all_gather, chunks=one_per_rank)
def pat_all_gather(rank: int, size: int) -> Steps:
    """Grow a binomial tree from every rank at once, far hops first while the bundles are small.

    (Parallel aggregated trees: Jeaugey, 2025.)
    """
    for distance in reversed(powers_of_two_below(size)):
        # The distances that the blocks of this step have already travelled.
        travelled = range(0, size - distance, 2 * distance)
        source = (rank - distance) % size
        yield (
            send([(rank - way) % size for way in travelled], dst=(rank + distance) % size),
            recv([(source - way) % size for way in travelled], src=source),
        )


@algorithm(reduce_scatter, chunks=one_per_rank)
def pat_reduce_scatter(rank: int, size: int) -> Steps:
    """Parallel aggregated trees run backwards: a binomial tree into every rank, near hops first (Jeaugey, 2025)."""
    yield from backwards(pat_all_gather(rank, size))


@algorithm(all_to_all, chunks=one_per_rank)
def bruck_all_to_all(rank: int, size: int) -> Steps:
    """A block that must travel d ranks takes the hops 1, 2, 4, ... that add up to d, bundled with others.

    (Bruck et al., 1997.)
    """
    inp, out = all_to_all.slots(size)
    # A block that must travel d ranks lies, on its whole way, in the slot that it would fill if it ended here.
    slots = [out[(rank - way) % size] for way in range(size)]
    yield tuple(copy(inp[(rank + way) % size], to=slots[way]) for way in range(size))
    for distance in powers_of_two_below(size):
        moving = [slots[way] for way in range(size) if way & distance]
        yield send(moving, dst=(rank + distance) % size), recv(moving, src=(rank - distance) % size)


@algorithm(barrier, chunks=one)
def dissemination_barrier(rank: int, size: int) -> Steps:
    """Tell the rank 1, 2, 4, ... to the right which ranks have arrived (Hensgen, Finkel and Manber, 1988)."""
    for distance in powers_of_two_below(size):
        yield send(0, dst=(rank + distance) % size), recv_reduce(0, src=(rank - distance) % size)
