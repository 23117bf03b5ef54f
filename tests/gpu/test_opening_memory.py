"""A rank that waits for its GPU cannot open the memory of others; no call may need that.

On these fake GPUs, a process opens memory only when nothing runs in its streams. Were a call to wait on the host
until a peer has opened its new memory, while the peer's kernel waits for this very call, both would wait for ever.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from gpu.gpu_ranks import MODES, on_gpu, run_on_gpus
from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)

SMALL, LARGE = 1000, 5 << 20  # elements; LARGE does not fit into the memory that is prepared for copies
LATE_S = 0.3
both_modes = pytest.mark.parametrize("mode", MODES)


def settings_of(mode):
    return MODES[mode] + ";open_waits=1"


def call_late_with_new_memory(comm, driver, length):
    total = comm.size * (comm.size + 1) // 2
    early = comm.rank == 0
    x = on_gpu(np.full(length, comm.rank + 1, np.float32))
    comm.all_reduce(x)
    for _ in range(2):
        if not early:
            time.sleep(LATE_S)
            x = on_gpu(np.full(length, comm.rank + 1, np.float32))
        else:
            x.write(np.full(length, 1, np.float32))
        comm.all_reduce(x, timeout=20.0)
        assert (x.numpy() == total).all()  # rank 0 waits for its GPU


@pytest.mark.parametrize(("size", "length"), [(2, SMALL), (3, SMALL), (2, LARGE)])
@both_modes
def test_collectives_on_new_memory(mode, size, length):
    run_on_gpus(call_late_with_new_memory, size, length, settings=settings_of(mode))


def gather_late(comm, driver):
    """Only the root has a large buffer, and the others wait for nothing."""
    part = on_gpu(np.full(LARGE // 2, comm.rank, np.float32))
    for _ in range(2):
        time.sleep(LATE_S if comm.rank == 0 else 0.0)
        out = on_gpu(np.zeros(LARGE // 2 * comm.size, np.float32)) if comm.rank == 0 else None
        comm.gather(out, part, root=0, timeout=20.0)
        part.numpy()
        if out is not None:
            assert out.numpy()[-1] == comm.size - 1


@both_modes
def test_a_root_with_new_memory(mode):
    run_on_gpus(gather_late, 2, settings=settings_of(mode))


def send_late_from_new_memory(comm, driver, length):
    comm.all_reduce(on_gpu(np.zeros(1, np.float32)))  # connects the ranks
    comm.synchronize()
    if comm.rank == 1:
        x = on_gpu(np.zeros(length, np.float32))
        comm.recv(x, 0, timeout=20.0)
        assert (x.numpy() == 7).all()  # waits for its GPU, and so for rank 0
    else:
        time.sleep(LATE_S)
        comm.send(on_gpu(np.full(length, 7, np.float32)), 1, timeout=20.0)
        comm.synchronize()


@both_modes
def test_messages_from_new_memory(mode):
    run_on_gpus(send_late_from_new_memory, 2, SMALL, settings=settings_of(mode))


def private_memory(comm, driver):
    x = on_gpu(np.full(LARGE, comm.rank + 1, np.float32), shareable=comm.rank == 0)
    for _ in range(2):
        time.sleep(0 if comm.rank == 0 else LATE_S)
        x.write(np.full(LARGE, comm.rank + 1, np.float32))
        comm.all_reduce(x, timeout=20.0)
        assert (x.numpy() == 3).all()


@both_modes
def test_large_memory_that_cannot_be_shared(mode):
    run_on_gpus(private_memory, 2, settings=settings_of(mode))
