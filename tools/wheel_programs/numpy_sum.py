"""Two ranks add numpy arrays; each compares the result with the sum that it computes itself."""

import numpy as np

import unisono

with unisono.connect() as comm:
    x = np.arange(1000.0) * (comm.rank + 1)
    comm.all_reduce(x)
    assert np.array_equal(x, np.arange(1000.0) * sum(range(1, comm.size + 1))), x
    print(f"rank {comm.rank} of {comm.size}: right")
