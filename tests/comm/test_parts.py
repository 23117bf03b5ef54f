"""Communicators made by split: they do not need their parent, and are freed without the garbage collector."""

from __future__ import annotations

import gc
import os
import re
import weakref
from pathlib import Path

import numpy as np
import pytest

import unisono
from unisono.errors import PeerLost
from unisono.launch.spawn import outcomes_of


def resources():
    """Return the descriptors, threads and shared memory mappings of this process."""
    status = Path("/proc/self/status").read_text()
    threads = int(re.search(r"Threads:\s+(\d+)", status)[1])
    maps = Path("/proc/self/maps").read_text().count("memfd:unisono")
    return len(os.listdir("/proc/self/fd")), threads, maps


def make_and_drop_parts(comm, rounds, how):
    """Split parts that are never closed, and use them in every way that allocates something."""
    gc.disable()
    found = []
    x = np.ones(1000)
    for _ in range(rounds):
        part = comm.split(0)
        twin = part.duplicate()
        inner = part.split(comm.rank % 2)
        gone = weakref.ref(part)
        part.all_reduce(x)
        twin.all_reduce(x, async_op=True).wait()
        inner.barrier()
        work = part.send(x, 1 - comm.rank, async_op=True)
        part.recv(np.empty_like(x), 1 - comm.rank)
        work.wait()
        method = part.all_reduce
        del part, twin, inner, work
        assert gone() is None, "something refers to the communicator"
        method(x)  # like a bound method, it keeps alive what it needs
        del method
        if how == "barrier":
            comm.barrier()
        found.append(resources())
    return found[1], found[-1]


@pytest.mark.parametrize("how", ["barrier", "no barrier"])
def test_unreferenced_parts_are_closed_without_the_garbage_collector(how):
    for early, late in unisono.spawn(make_and_drop_parts, 2, 12, how):
        assert late == early


def use_a_part_alone(comm):
    part = comm.split(0, key=-comm.rank)
    comm.close()
    x = np.ones(3)
    part.all_reduce(x)
    inner = part.split(0)
    part.close()
    inner.all_reduce(x)
    return x[0]


def test_a_part_does_not_depend_on_its_parent():
    assert unisono.spawn(use_a_part_alone, 3) == [9, 9, 9]


def fail_with_parts(comm):
    before = resources()
    try:
        with comm.duplicate() as whole:
            part = whole.split(0)
            inner = part.duplicate()
            for one in (whole, part, inner):
                one.all_reduce(np.ones(1000), async_op=True).wait()
            if comm.rank == 2:
                os._exit(3)
            works = [one.all_reduce(np.ones(1000), async_op=True) for one in (part, inner)]
            whole.all_reduce(np.ones(1000))
    except PeerLost:
        pass
    assert part.closed
    assert inner.closed
    del works, one
    # the lost rank never closes its side, but this process keeps no thread, mapping or descriptor
    del whole, part, inner
    return before, resources()


def test_an_exception_closes_a_communicator_and_its_parts():
    for outcome in outcomes_of(fail_with_parts, 3, patience_s=10.0)[:2]:
        assert outcome.value is not None, outcome.story
        before, after = outcome.value
        assert after == before


def test_an_endpoint_that_outlives_its_communicator_frees_no_memory_of_other_files(tmp_path):
    comm = unisono.connect()
    number = comm._link.resources.descriptor
    work = comm.all_reduce(np.ones(4), async_op=True)
    work.wait()
    del comm
    gc.collect()
    # Only the work keeps the endpoint now. A file gets the descriptor number that the memory had, if it is free.
    data = os.urandom(1 << 20)
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    is_free = not Path(f"/proc/self/fd/{number}").exists()
    if is_free:
        os.dup2(file, number)
    try:
        os.write(file, data)
        del work  # the last of its ranks to close, which frees the memory
        assert os.pread(file, len(data), 0) == data
    finally:
        os.close(file)
        if is_free and file != number:
            os.close(number)
