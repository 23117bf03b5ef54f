"""The ring family: every rank talks to its two neighbours only.

The fewest bytes that are possible, in many steps; the choice for long messages.
"""

from unisono.algorithms.declaration import Steps, algorithm, one_per_rank
from unisono.collectives import all_gather, all_reduce, reduce_scatter
from unisono.schedule import mapped, recv, recv_reduce, send, together


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


@algorithm(all_reduce, chunks=lambda size: 2 * size)
def bidirectional_ring(rank: int, size: int) -> Steps:
    """One half of the message goes round to the right and the other to the left, so that links work both ways.

    (Used on machines whose links carry both directions at full speed: Jain and Sabharwal, 2010.)
    """
    if size == 2:  # the neighbour on the right is the one on the left: both halves travel together
        yield from mapped(ring(rank, size), chunks=[(0, 2), (1, 3)])
        return
    rightwards = mapped(ring(rank, size), chunks=range(size))
    leftwards = mapped(ring(size - 1 - rank, size), ranks=range(size)[::-1], chunks=range(size, 2 * size))
    yield from together(rightwards, leftwards)
