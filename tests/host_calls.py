"""Calls that ranks on test hosts make; without pytest, which ranks do not need."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import unisono


def keep_calling(comm: Any, count: int = 50_000) -> None:
    """Make calls until one fails."""
    x = np.ones(count, np.float32)
    while True:
        comm.all_reduce(x)


def sleep_then_call(comm: Any, seconds: float) -> None:
    """Make a call after a while in which this rank does nothing."""
    comm.barrier()
    time.sleep(seconds)
    comm.barrier()


def wait_in_barrier(comm: Any) -> None:
    """Wait for the other ranks."""
    comm.barrier()


def make_part(comm: Any, members: list[int]) -> None:
    """Make a communicator of some ranks, and use it once."""
    part = comm.split(0 if comm.rank in members else 1)
    part.barrier()
    comm.kept_part = part


def use_part(comm: Any, times: int = 20) -> float:
    """Make calls in the communicator of ``make_part``; return the last sum."""
    for _ in range(times):
        x = np.full(30_000, 1.0, np.float32)
        comm.kept_part.all_reduce(x)
    return float(x.sum() / x.size)


def sum_of_ones(comm: Any, count: int, times: int) -> float:
    """Make calls; return the seconds of all of them."""
    began_s = time.monotonic()
    for _ in range(times):
        x = np.ones(count, np.float32)
        comm.all_reduce(x)
        assert (x == comm.size).all()
    return time.monotonic() - began_s


def broken(comm: Any) -> bool:
    """Return whether the communicator can be used no more."""
    return bool(comm.broken)


def differ(comm: Any, odd: int) -> None:
    """Make another call on rank ``odd`` than on the others."""
    comm.all_reduce(np.ones(16, np.float32), op="max" if comm.rank == odd else "sum", algorithm="ring")
    comm.barrier()


def leave(comm: Any, code: int) -> None:
    """End the process of this rank."""
    raise SystemExit(code)


def transport(comm: Any) -> str:
    """Return the transport that carries messages between hosts."""
    comm.barrier()
    return str(comm.transport)


def courier_port(comm: Any) -> int:
    """Return the port at which this rank receives letters from other hosts."""
    return int(comm._link.resources.courier.engine.port)


@unisono.algorithm(unisono.collectives.all_reduce, chunks=unisono.one)
def there_and_back(rank, size):
    """Sum along a chain of ranks, then send the sum back."""
    if rank > 0:
        yield unisono.recv_reduce(0, src=rank - 1)
    if rank < size - 1:
        yield unisono.send(0, dst=rank + 1)
        yield unisono.recv(0, src=rank + 1)
    if rank > 0:
        yield unisono.send(0, dst=rank - 1)


def reduce_with_own_program(comm: Any) -> bytes:
    """Return the sum that the program above computes."""
    x = np.random.default_rng(comm.rank).standard_normal(40_003).astype(np.float32)
    comm.all_reduce(x, algorithm=there_and_back)
    return x.tobytes()


def exchange_with_tags(comm: Any) -> list[str]:
    """Send to every rank with several tags and lengths; receive in another order. Return what went wrong."""
    rank, size, wrong = comm.rank, comm.size, []
    lengths = {3: 1, 1: 50_000, 2: 300_000}
    works = [
        comm.send(np.full(length, 100.0 * rank + tag), peer, tag=tag, async_op=True)
        for peer in range(size) if peer != rank for tag, length in lengths.items()
    ]  # fmt: skip
    for tag in (2, 3, 1):
        for peer in range(size):
            if peer == rank:
                continue
            y = np.zeros(lengths[tag])
            comm.recv(y, peer, tag=tag)
            if not (y == 100.0 * peer + tag).all():
                wrong.append(f"tag {tag} from rank {peer}: {y[:3]}")
    for work in works:
        work.wait()
    comm.barrier()
    senders = []
    comm_to_0 = comm.send(np.array([float(rank)]), 0, tag=9, async_op=True) if rank else None
    for _ in range(size - 1 if rank == 0 else 0):
        y = np.zeros(1)
        senders.append(comm.recv(y, tag=9))
        if y[0] != senders[-1]:
            wrong.append(f"from any rank: {y} of rank {senders[-1]}")
    if comm_to_0 is not None:
        comm_to_0.wait()
    if rank == 0 and sorted(senders) != list(range(1, size)):
        wrong.append(f"senders {senders}")
    return wrong


def use_duplicate(comm: Any) -> list[str]:
    """Use a communicator and its duplicate in turns, asynchronously; return what went wrong."""
    wrong, copy = [], comm.duplicate()
    works, arrays = [], []
    for turn in range(6):
        arrays.append(np.full(20_000, float(turn)))
        works.append((copy if turn % 2 else comm).all_reduce(arrays[-1], async_op=True))
    for turn, (work, x) in enumerate(zip(works, arrays, strict=True)):
        work.wait()
        if not (x == turn * comm.size).all():
            wrong.append(f"turn {turn}: {x[:3]}")
    if copy.hosts != comm.hosts:
        wrong.append(f"hosts {copy.hosts}")
    copy.close()
    return wrong


def receive(comm: Any, src: int | None) -> None:
    """Wait for a message of a rank, or of any."""
    comm.recv(np.zeros(4), src)


def send_to(comm: Any, dst: int, count: int = 4) -> None:
    """Send a message to a rank."""
    comm.send(np.zeros(count), dst)
