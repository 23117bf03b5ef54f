"""Sum an array over all ranks: `unisono run -n 4 examples/sum_of_all.py [ALGORITHM]`, or without a launcher."""

import sys

import numpy as np

import unisono

algorithm = sys.argv[1] if len(sys.argv) > 1 else None  # such as ring, or my.py:my_ring

with unisono.connect() as comm:
    x = np.full(1_000_000, comm.rank + 1, dtype=np.float32)
    comm.all_reduce(x, algorithm=algorithm)
    total = comm.size * (comm.size + 1) / 2
    assert (x == total).all()

    work = comm.all_reduce(x, op="max", async_op=True)  # continues while this rank does something else
    squares = np.empty(comm.size)
    comm.all_gather(squares, np.array([comm.rank**2.0]))
    work.wait()

    if comm.rank == 0:
        print(f"{comm.size} ranks: each element of the sum is {total:g}; squares of the ranks: {squares.tolist()}")
