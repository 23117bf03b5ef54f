"""Checks of a communicator whose ranks are the survivors of another one."""

from __future__ import annotations

import numpy as np

COUNT = 60


def numbers_of(job_rank: int, count: int = COUNT) -> np.ndarray:
    """Return the numbers that a rank contributes: they depend on its rank in the job."""
    return (np.arange(count) + 1000 * (job_rank + 1)).astype(np.int64)


def check_collectives(comm) -> None:
    """Compare every collective with numpy, on all ranks of ``comm``."""
    rank, size = comm.rank, comm.size
    mine, everyone = numbers_of(comm.job_ranks[rank]), [numbers_of(each) for each in comm.job_ranks]
    total = np.sum(everyone, axis=0)
    root = size - 1

    x = mine.copy()
    comm.all_reduce(x)
    assert (x == total).all()
    x = mine.copy()
    comm.broadcast(x, root=root)
    assert (x == everyone[root]).all()
    x = mine.copy()
    comm.reduce(x, root=root)
    assert (x == (total if rank == root else mine)).all()
    rows = np.zeros((size, COUNT), np.int64)
    comm.all_gather(rows, mine)
    assert (rows == everyone).all()
    parts = [numbers_of(each, 4 * size) for each in comm.job_ranks]
    out = np.zeros(4, np.int64)
    comm.reduce_scatter(out, parts[rank])
    assert (out == np.sum(parts, axis=0)[4 * rank : 4 * rank + 4]).all()
    out = np.zeros(4 * size, np.int64)
    comm.all_to_all(out, parts[rank])
    assert (out.reshape(size, 4) == [part[4 * rank : 4 * rank + 4] for part in parts]).all()
    gathered = np.zeros((size, COUNT), np.int64) if rank == root else None
    comm.gather(gathered, mine, root=root)
    assert gathered is None or (gathered == everyone).all()
    out = np.zeros(4, np.int64)
    comm.scatter(out, parts[root] if rank == root else None, root=root)
    assert (out == parts[root][4 * rank : 4 * rank + 4]).all()
    received = np.zeros(COUNT, np.int64)
    work = comm.send(mine, dst=(rank + 1) % size, tag=3, async_op=True) if size > 1 else None
    if work is not None:
        comm.recv(received, src=(rank - 1) % size, tag=3)
        work.wait()
        assert (received == everyone[(rank - 1) % size]).all()
    comm.barrier()
