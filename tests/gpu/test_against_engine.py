"""Device programs give the bits that the engine gives on CPU arrays."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import emulated_call
from emulator import Emulator

from arrays import bits
from rank_pool import RankPool
from unisono.algorithms import find
from unisono.compiler import Lengths
from unisono.verifier import proved

SIZE = 3


@pytest.fixture(scope="module")
def pool():
    """Return real ranks."""
    made = RankPool(SIZE)
    yield made
    made.close()


def all_reduce(comm, array, op, algorithm):
    comm.all_reduce(array, op=op, algorithm=algorithm)
    return array


@pytest.mark.parametrize("op", ["sum", "avg", "max"])
@pytest.mark.parametrize("name", ["direct", "naive", "ring", "tree", "rabenseifner"])
def test_all_reduce_gives_the_bits_of_the_engine(pool, name, op):
    for number, dtype in enumerate((np.float32, np.float16, np.float64)):
        rng = np.random.default_rng(number)
        inputs = [rng.standard_normal(53).astype(dtype) for _ in range(SIZE)]
        wanted = pool.call(all_reduce, [array.copy() for array in inputs], [op] * SIZE, [name] * SIZE)
        call = emulated_call(proved(find(name).schedule(SIZE)), Lengths((53,), (53,)), inputs, op=op)
        (found,) = Emulator([call], number).run()
        assert [bits(array) for array in found] == [bits(array) for array in wanted], dtype
