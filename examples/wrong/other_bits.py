"""Wrong on purpose (docs/tour.md): the sums are right, but each rank adds in a different order."""

from unisono import algorithm, one, recv_reduce, send
from unisono.collectives import all_reduce


@algorithm(all_reduce, chunks=one)
def other_bits(rank, size):
    """Send to all ranks, and add what arrives from them."""
    peers = [(rank + distance) % size for distance in range(1, size)]
    yield *(send(0, dst=peer) for peer in peers), *(recv_reduce(0, src=peer) for peer in peers)
