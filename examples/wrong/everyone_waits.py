"""Wrong on purpose (docs/tour.md): every rank waits for a neighbour that waits as well."""

from unisono import algorithm, one, recv_reduce, send
from unisono.collectives import all_reduce


@algorithm(all_reduce, chunks=one)
def everyone_waits(rank, size):
    """Receive from the left, then send to the right."""
    yield recv_reduce(0, src=(rank - 1) % size)
    yield send(0, dst=(rank + 1) % size)
