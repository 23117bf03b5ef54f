"""Limits of the system, on threads and memory, are reported with a rank and a hint."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import numpy as np
import pytest

from unisono.errors import CommError
from unisono.launch.spawn import outcomes_of

pytestmark = pytest.mark.slow


def address_space_bytes():
    return int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def start_no_thread(comm, how):
    x = np.ones(4)
    comm.all_reduce(x)
    comm.barrier()
    if comm.rank == 1:
        resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes() + 4_000_000,) * 2)
    if how == "collective":
        comm.all_reduce(x, async_op=True).wait()
    elif how == "send" and comm.rank == 1:
        comm.send(x, 0, async_op=True).wait()
    elif how == "recv" and comm.rank == 1:
        comm.recv(x, 0, async_op=True).wait()
    comm.barrier()


@pytest.mark.parametrize("how", ["collective", "send", "recv"])
def test_a_rank_that_cannot_start_a_thread_tells_all_ranks(how):
    outcomes = outcomes_of(start_no_thread, 2, how, timeout=30, patience_s=10.0, start="spawn")
    for outcome in outcomes:
        assert type(outcome.error) is CommError, outcome.story
        assert outcome.error.rank == 1
        text = str(outcome.error)
        assert text.startswith("rank 1 could not start a thread for asynchronous calls: Resource temporarily")
        assert "ulimit -u" in text


def split_without_memory(comm):
    comm.barrier()
    if comm.rank == 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    comm.split(0 if comm.rank == 2 else None)


def test_a_rank_without_shared_memory_for_a_part_names_itself_and_gives_a_hint():
    error = outcomes_of(split_without_memory, 3, timeout=30, patience_s=10.0)[2].error
    assert type(error) is CommError
    assert error.rank == 2
    text = str(error)
    said = r"rank 2 of the job \(rank 0 of its group\): no shared memory for \d+ bytes: File too large; "
    assert re.match(said, text), text
    assert "staging_bytes" in text
    assert "ulimit -f" in text


def call_without_memory(comm):
    part = comm.split(0)
    part.barrier()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    if comm.rank == 0:  # the memory of a channel is allocated at its first send
        part.send(np.ones(1 << 20), 1)
    else:
        part.recv(np.ones(1 << 20), 0)


def test_the_hint_names_an_existing_argument():
    for outcome in outcomes_of(call_without_memory, 2, timeout=30, patience_s=10.0):
        assert type(outcome.error) is CommError, outcome.story
        assert re.match(r"rank [01]: no shared memory for \d+ bytes: File too large; ", str(outcome.error))
        assert "connect with smaller staging_bytes" in str(outcome.error)
