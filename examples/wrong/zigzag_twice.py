"""Wrong on purpose (docs/tour.md): on the way back, the result is added instead of stored."""

from unisono import algorithm, one, recv_reduce, send
from unisono.collectives import all_reduce


@algorithm(all_reduce, chunks=one)
def zigzag_twice(rank, size):
    """Hand the sum along a line of ranks to the last one, and hand the result back."""
    if rank > 0:
        yield recv_reduce(0, src=rank - 1)
    if rank < size - 1:
        yield send(0, dst=rank + 1)
        yield recv_reduce(0, src=rank + 1)
    if rank > 0:
        yield send(0, dst=rank - 1)
