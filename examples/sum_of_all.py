"""Sum an array over all ranks. Run it as `unisono run -n 4 examples/sum_of_all.py`, or alone."""

import numpy as np

import unisono

with unisono.connect() as comm:
    x = np.full(1_000_000, comm.rank + 1, dtype=np.float32)
    comm.all_reduce(x)
    total = comm.size * (comm.size + 1) / 2
    assert (x == total).all()

    comm.all_reduce(x, op="max", algorithm="ring")  # an algorithm by its name

    work = comm.all_reduce(x, async_op=True)  # continues while this rank does something else
    parts = np.empty(comm.size)
    comm.all_gather(parts, np.array([comm.rank**2.0]))
    work.wait()

    if comm.rank == 0:
        print(f"{comm.size} ranks; sum of ranks + 1: {total:g}; squares: {parts.tolist()}")
        print(comm.explain("all_reduce", x.nbytes))
