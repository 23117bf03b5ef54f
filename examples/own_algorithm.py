"""Compare your own algorithm, which is proved on first use, with the built-in ring."""

import time

import numpy as np

import unisono
from unisono import algorithm, one_per_rank, recv, recv_reduce, send
from unisono.collectives import all_reduce


@algorithm(all_reduce, chunks=one_per_rank)
def my_ring(rank, size):
    """Sum each chunk on one trip around the ring; distribute the sums on a second trip."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(1, size):
        yield send((rank - hop) % size, dst=right), recv_reduce((rank - hop - 1) % size, src=left)
    for hop in range(size - 1):
        yield send((rank - hop) % size, dst=right), recv((rank - hop - 1) % size, src=left)


def median_s(comm, x, algorithm):
    """Return the median time of a call in seconds."""
    times = []
    for _ in range(50):
        comm.barrier()
        began = time.perf_counter()
        comm.all_reduce(x, algorithm=algorithm)
        times.append(time.perf_counter() - began)
    return sorted(times)[25]


def compare(comm):
    """Measure both algorithms on every rank."""
    x = np.ones(250_000, np.float32)
    return [median_s(comm, x, each) for each in ("ring", my_ring)]


if __name__ == "__main__":
    built_in_s, mine_s = unisono.spawn(compare, 3)[0]
    print(f"1 MB on 3 ranks: built-in ring {built_in_s * 1e6:.0f} µs, my_ring {mine_s * 1e6:.0f} µs")
