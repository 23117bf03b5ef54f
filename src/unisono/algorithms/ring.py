"""The ring family: every rank talks to its two neighbours only.

The fewest bytes that are possible, in many steps; the choice for long vectors.
"""

from unisono.algorithms.declaration import Steps, algorithm, one_per_rank
from unisono.collectives import all_gather, all_reduce, reduce_scatter
from unisono.schedule import backwards, recv, recv_reduce, send


@algorithm(reduce_scatter, chunks=one_per_rank)
def ring_reduce_scatter(rank: int, size: int) -> Steps:
    """Chunk c sets out from rank c+1, gains one addend per hop, and ends complete on rank c.

    (Patarasuk and Yuan, 2009.)
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(1, size):
        yield send((rank - hop) % size, dst=right), recv_reduce((rank - hop - 1) % size, src=left)


@algorithm(all_gather, chunks=one_per_rank)
def ring_all_gather(rank: int, size: int) -> Steps:
    """Every rank passes on to its right the chunk that it received last (Patarasuk and Yuan, 2009)."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(size - 1):
        yield send((rank - hop) % size, dst=right), recv((rank - hop - 1) % size, src=left)


@algorithm(all_reduce, chunks=one_per_rank)
def ring(rank: int, size: int) -> Steps:
    """Sum each chunk once round the ring, then share it on a second way round (Patarasuk and Yuan, 2009)."""
    yield from ring_reduce_scatter(rank, size)  # all-reduce = reduce-scatter
    yield from ring_all_gather(rank, size)  #                + all-gather, literally


@algorithm(all_gather, chunks=one_per_rank)
def bidirectional_ring_all_gather(rank: int, size: int) -> Steps:
    """Every chunk goes round both ways at once and is everywhere after half a round (Jain and Sabharwal, 2010)."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(size // 2):
        rightwards = send((rank - hop) % size, dst=right), recv((rank - hop - 1) % size, src=left)
        leftwards = send((rank + hop) % size, dst=left), recv((rank + hop + 1) % size, src=right)
        # With an even size the rank just opposite is reached by both ways: one is enough.
        yield rightwards + leftwards if 2 * hop + 2 < size else rightwards


@algorithm(reduce_scatter, chunks=one_per_rank)
def bidirectional_ring_reduce_scatter(rank: int, size: int) -> Steps:
    """The same run backwards: each chunk's sum comes to its rank from both sides (Jain and Sabharwal, 2010)."""
    yield from backwards(bidirectional_ring_all_gather(rank, size))


@algorithm(all_reduce, chunks=one_per_rank)
def bidirectional_ring(rank: int, size: int) -> Steps:
    """A ring that uses its links both ways, and so needs half the steps (Jain and Sabharwal, 2010)."""
    yield from bidirectional_ring_reduce_scatter(rank, size)
    yield from bidirectional_ring_all_gather(rank, size)
