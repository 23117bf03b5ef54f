"""Ranks on several hosts communicate over UCX; the tests skip without it (pip install unisono[net])."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import unisono
from network_ranks import (
    Job,
    call_on_ranks,
    die_in_a_call,
    fork_a_child,
    open_descriptors,
    outcome_of_call,
    pretend_host,
)
from rendezvous_faults import LIMIT_S, Started
from unisono.bootstrap import network_messages, ucx_search
from unisono.bootstrap.network_membership import connect_link_over_network
from unisono.bootstrap.network_options import check_transport
from unisono.comm.communicator import Communicator
from unisono.errors import UnisonoError

needs_ucx = pytest.mark.skipif(
    not ucx_search.packaged_libraries(), reason="SKIPPED, NOT TESTED: UCX (pip install libucx-cu12)"
)


def transport_of(job, rank):
    """Return the transport of a rank: the last one of ``mixed`` has TCP."""
    return "tcp" if job.name == "mixed" and rank == job.size - 1 else "ucx"


def connected(job, rank, transport=None):
    plan = replace(job.plan(), transport=transport or transport_of(job, rank))
    host = pretend_host(job.hosts[rank])
    return Communicator(connect_link_over_network(job.identity(rank), plan, 20.0, 30.0, 1 << 20, dict, host=host))


def on_ranks(job, function):
    """Call a function with the communicator of each rank; return the results."""
    return call_on_ranks(job, function, connected)


def use_everything(comm):
    """Use a communicator in several ways; return sums that depend on every byte."""
    sums = []
    for count in (1, 5000, 700_000):
        x = np.arange(count, dtype=np.float32) % 17 + comm.rank
        comm.all_reduce(x)
        expected = (np.arange(count, dtype=np.float32) % 17) * comm.size + sum(range(comm.size))
        sums.append(bool(np.array_equal(x, expected)))
    part = comm.split(comm.rank % 2)
    y = np.full(100_000, float(comm.rank))
    part.all_reduce(y)
    sums.append(y[0] == y[-1] == sum(range(comm.rank % 2, comm.size, 2)))
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    received = np.empty(300_000)
    work = comm.send(np.full(300_000, comm.rank * 1.0), dst=right, tag=3, async_op=True)
    comm.recv(received, src=left, tag=3)
    work.wait()
    sums.append(bool((received == left).all()))
    return all(sums), comm.transport


@needs_ucx
@pytest.mark.parametrize("hosts", ["ab", "abab", "abc"])
def test_data_travels_over_ucx(hosts):
    for result in on_ranks(Job(hosts), use_everything):
        assert result[0] is True, result
        assert result[1].startswith("ucx 1.")
        assert "tcp/lo" in result[1]


@needs_ucx
def test_ranks_with_and_without_ucx_communicate():
    results = on_ranks(Job("abab", name="mixed"), use_everything)
    assert [result[0] for result in results] == [True] * 4, results
    assert [result[1].split()[0] for result in results] == ["ucx", "ucx", "ucx", "tcp"]


@needs_ucx
def test_a_rank_that_is_killed_is_named():
    job = Job("aba")
    started = [Started(outcome_of_call, connected, die_in_a_call, job, rank) for rank in range(3)]
    try:
        for rank in (0, 2):
            culprit, _, seconds = started[rank].result(time.monotonic() + LIMIT_S)
            assert culprit == 1
            assert seconds < 5.0
    finally:
        for each in started:
            each.end()


@needs_ucx
def test_a_forked_child_does_not_disturb_ucx():
    assert on_ranks(Job("ab"), fork_a_child) == [(7, 2.0)] * 2


def measure_leftovers(job, rank):
    counts = []
    for _ in range(3):
        with connected(job, rank) as comm:
            comm.all_reduce(np.ones(200_000))
            comm.barrier()
        del comm
        counts.append(open_descriptors())
    return counts


@needs_ucx
def test_descriptors_do_not_accumulate():
    job = Job("ab")
    started = [Started(measure_leftovers, job, rank) for rank in range(2)]
    for each in started:
        counts = each.result(time.monotonic() + LIMIT_S)
        each.end()
        assert counts[1] == counts[2], counts


def test_a_library_that_cannot_be_loaded_is_named():
    def attempt(job, rank):
        try:
            with connected(job, rank, "ucx:/no/such/libucp.so.0"):
                return None
        except UnisonoError as error:
            return error.id, str(error)

    job = Job("ab")
    started = [Started(attempt, job, rank) for rank in range(2)]
    for each in started:
        _, text = each.result(time.monotonic() + LIMIT_S)
        each.end()
        assert "/no/such/libucp.so.0: cannot open shared object file" in text
        assert 'transport="tcp"' in text


@pytest.mark.parametrize("transport", ["udp", "", "ucx:", None])
def test_an_unknown_transport_is_refused(transport):
    with pytest.raises(unisono.UsageError, match='expected "tcp", "ucx"') as caught:
        check_transport(transport)
    assert caught.value.id == network_messages.BAD_TRANSPORT.id
