"""The dissemination family: everyone sends to the rank 1, 2, 4, ... further on, round the circle.

ceil(log2 p) steps at any size, with no power of two needed.
"""

from unisono.algorithms.declaration import Steps, algorithm, one, one_per_rank
from unisono.algorithms.tree import spans
from unisono.collectives import all_gather, all_to_all, barrier, reduce_scatter
from unisono.schedule import backwards, copy, recv, recv_reduce, send


@algorithm(all_gather, chunks=one_per_rank)
def bruck_all_gather(rank: int, size: int) -> Steps:
    """Send all blocks you have to the rank 1, 2, 4, ... to the left; the last time only what it lacks.

    (Bruck et al., 1997.)
    """
    for distance in spans(size):
        amount = min(distance, size - distance)
        yield (
            send([(rank + block) % size for block in range(amount)], dst=(rank - distance) % size),
            recv([(rank + distance + block) % size for block in range(amount)], src=(rank + distance) % size),
        )


@algorithm(all_gather, chunks=one_per_rank)
def pat_all_gather(rank: int, size: int) -> Steps:
    """A binomial tree from every rank, all grown at once, far hops first while the bundles are small.

    (Parallel aggregated trees: Jeaugey, 2025.)
    """
    for distance in reversed(spans(size)):
        # How far the blocks that are now passed on have come already.
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
    """A block that has d ranks to go takes the hops 1, 2, 4, ... that add up to d, bundled with all others.

    (Bruck et al., 1997.)
    """
    inp, out = all_to_all.slots(size)
    # The block that has to go d ranks lies, on its whole way, in the slot where it would belong if it were here.
    place = [out[(rank - way) % size] for way in range(size)]
    yield tuple(copy(inp[(rank + way) % size], to=place[way]) for way in range(size))
    for distance in spans(size):
        moving = [place[way] for way in range(size) if way & distance]
        yield send(moving, dst=(rank + distance) % size), recv(moving, src=(rank - distance) % size)


@algorithm(barrier, chunks=one)
def dissemination_barrier(rank: int, size: int) -> Steps:
    """Tell the rank 1, 2, 4, ... to the right whom you have heard of (Hensgen, Finkel and Manber, 1988)."""
    for distance in spans(size):
        yield send(0, dst=(rank + distance) % size), recv_reduce(0, src=(rank - distance) % size)
