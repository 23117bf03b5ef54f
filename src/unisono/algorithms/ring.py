"""The ring family: every rank communicates only with its two neighbours.

The fewest bytes possible, in many steps: the choice for long vectors.
"""

from unisono.algorithms.declaration import Steps, algorithm, one_per_rank
from unisono.collectives import all_gather, all_reduce, reduce_scatter
from unisono.schedule import backwards, recv, recv_reduce, send


@algorithm(reduce_scatter, chunks=one_per_rank)
def ring_reduce_scatter(rank: int, size: int) -> Steps:
    """Chunk c starts on rank c+1, gains one addend per hop, and ends complete on rank c.

    (Patarasuk and Yuan, 2009.)
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(1, size):
        yield send((rank - hop) % size, dst=right), recv_reduce((rank - hop - 1) % size, src=left)


@algorithm(all_gather, chunks=one_per_rank)
def ring_all_gather(rank: int, size: int) -> Steps:
    """Every rank passes the chunk that it received last on to its right (Patarasuk and Yuan, 2009)."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(size - 1):
        yield send((rank - hop) % size, dst=right), recv((rank - hop - 1) % size, src=left)


@algorithm(all_reduce, chunks=one_per_rank)
def ring(rank: int, size: int) -> Steps:
    """Sum each chunk on one trip around the ring; distribute the sums on a second trip (Patarasuk and Yuan, 2009)."""
    yield from ring_reduce_scatter(rank, size)  # all-reduce = reduce-scatter
    yield from ring_all_gather(rank, size)  #                + all-gather, literally


@algorithm(all_gather, chunks=one_per_rank)
def bidirectional_ring_all_gather(rank: int, size: int) -> Steps:
    """Every chunk travels both ways at once and reaches all ranks in half a trip (Jain and Sabharwal, 2010)."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(size // 2):
        rightwards = send((rank - hop) % size, dst=right), recv((rank - hop - 1) % size, src=left)
        leftwards = send((rank + hop) % size, dst=left), recv((rank + hop + 1) % size, src=right)
        # With an even size both directions reach the opposite rank: one of them is enough.
        yield rightwards + leftwards if 2 * hop + 2 < size else rightwards


@algorithm(reduce_scatter, chunks=one_per_rank)
def bidirectional_ring_reduce_scatter(rank: int, size: int) -> Steps:
    """The all-gather run backwards: each sum reaches its rank from both sides (Jain and Sabharwal, 2010)."""
    yield from backwards(bidirectional_ring_all_gather(rank, size))


@algorithm(all_reduce, chunks=one_per_rank)
def bidirectional_ring(rank: int, size: int) -> Steps:
    """A ring that uses its links in both directions, and so needs half the steps (Jain and Sabharwal, 2010)."""
    yield from bidirectional_ring_reduce_scatter(rank, size)
    yield from bidirectional_ring_all_gather(rank, size)
