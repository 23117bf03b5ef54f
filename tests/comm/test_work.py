"""Asynchronous calls, and transfers between two ranks."""

from __future__ import annotations

import time

import numpy as np
import pytest

from unisono.errors import CollectiveTimeout

SIZES = (1, 2, 3, 5)


def queue_calls(comm):
    arrays = [np.full(1000 * (n + 1), float(comm.rank + n)) for n in range(20)]
    works = [comm.all_reduce(array, async_op=True) for array in arrays]
    last = np.ones(3)
    comm.all_reduce(last)  # a blocking call waits for its turn
    assert all(work.done() for work in works), "calls complete in order"
    for n, (work, array) in enumerate(zip(works, arrays, strict=True)):
        work.wait()
        assert work.exception() is None
        assert (array == sum(range(comm.size)) + n * comm.size).all()
    assert "done" in repr(works[0])


@pytest.mark.parametrize("size", SIZES)
def test_calls_complete_in_order(pools, size):
    pools[size].call(queue_calls)


def overlap(comm):
    x = np.ones(100)
    if comm.rank == 0:
        work = comm.all_reduce(x, async_op=True)
        assert not work.done()
        assert "running" in repr(work)
        assert work.exception() is None
        with pytest.raises(CollectiveTimeout, match="is still running"):
            work.wait(timeout=0.05)
        comm.send(np.ones(1), dst=1)  # transfers do not queue behind collectives
        work.wait()
    else:
        comm.recv(np.ones(1), src=0)
        comm.all_reduce(x)
    assert (x == comm.size).all()


def test_asynchronous_calls_overlap_with_other_work(pools):
    pools[2].call(overlap)


def python_runs_meanwhile(comm):
    if comm.rank == 1:
        comm.recv(np.ones(1), src=0)
        comm.all_reduce(np.ones(1))
        return True
    import threading

    counted = []

    def count():
        for _ in range(50):
            counted.append(1)
            time.sleep(0.001)
        comm.send(np.ones(1), dst=1)

    thread = threading.Thread(target=count)
    thread.start()
    comm.all_reduce(np.ones(1))  # cannot end before the other thread has counted and sent
    thread.join()
    return len(counted) == 50


def test_other_threads_run_while_a_call_waits(pools):
    assert pools[2].call(python_runs_meanwhile) == [True, True]


def exchange(comm, count):
    """Every rank sends to all others and receives from all others, all at once."""
    others = [peer for peer in range(comm.size) if peer != comm.rank]
    sent = [np.full(count, 10 * comm.rank + peer, np.int32) for peer in others]
    received = [np.zeros(count, np.int32) for _ in others]
    works = [comm.send(x, dst=peer, async_op=True) for x, peer in zip(sent, others, strict=True)]
    works += [comm.recv(x, src=peer, async_op=True) for x, peer in zip(received, others, strict=True)]
    for work in works:
        work.wait(timeout=60)
    for x, peer in zip(received, others, strict=True):
        assert (x == 10 * peer + comm.rank).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [0, 1, 100, 1_000_000])
def test_all_ranks_can_exchange_messages_at_once(pools, size, count):
    pools[size].call(exchange, [count] * size)


def in_turn(comm):
    """Messages between two ranks arrive in sending order, even between collectives."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for n in range(50):
        work = comm.send(np.array([n, comm.rank]), dst=right, async_op=True)
        if n % 7 == 0:
            comm.barrier()
        x = np.zeros(2, int)
        comm.recv(x, src=left)
        assert x.tolist() == [n, left]
        work.wait()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_transfers_arrive_in_order(pools, size):
    pools[size].call(in_turn)


def late_mix(comm):
    """Post blocking receives after asynchronous ones: each gets its own message."""
    if comm.rank == 0:
        for n in range(3):
            comm.send(np.full(100_000, n), dst=1)
        return
    first, second, third = (np.zeros(100_000, int) for _ in range(3))
    works = [comm.recv(first, src=0, async_op=True), comm.recv(second, src=0, async_op=True)]
    comm.recv(third, src=0)
    for work in works:
        work.wait()
    assert (first[0], second[0], third[0]) == (0, 1, 2)


def test_a_blocking_receive_waits_for_earlier_receives(pools):
    pools[2].call(late_mix)
