"""Ranks on several hosts communicate: connect() opens couriers, and parts of a communicator use them too."""

from __future__ import annotations

import os
import socket
import threading
import time

import numpy as np
import pytest

import unisono
from containers import NEW_PROCESSES, enter_new, needs_namespaces
from network_ranks import TOKEN, Job, call_on_ranks, fork_a_child, free_port, open_descriptors, pretend_host
from rendezvous_faults import LIMIT_S, Started
from unisono.bootstrap import network_messages
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.network_membership import connect_link_over_network
from unisono.comm.communicator import Communicator
from unisono.errors import UnisonoError


def connected(job, rank):
    """Return the communicator of a rank of a job on pretended hosts."""
    host = pretend_host(job.hosts[rank])
    link = connect_link_over_network(job.identity(rank), job.plan(), 20.0, job.timeout_s, 1 << 20, dict, host=host)
    return Communicator(link)


def on_ranks(job, function):
    """Call a function with the communicator of each rank; return the results."""
    return call_on_ranks(job, function, connected)


def collect(comm):
    """Use a communicator and its parts; return what they know of themselves."""
    parts = {"all": comm, "duplicate": comm.duplicate(), "odd": comm.split(comm.rank % 2, key=-comm.rank)}
    parts["pairs"] = parts["odd"].split(parts["odd"].rank // 2)
    parts["again"] = comm.duplicate()
    facts = {}
    for name, part in parts.items():
        x = np.full(5, 2.0 ** part._link.job_ranks[part.rank])
        part.all_reduce(x)
        facts[name] = (x[0], part._link.job_ranks, part._link.number, part.hosts, part._link.processes)
    return facts


@pytest.mark.parametrize("hosts", ["ab", "aab", "abab", "abbb", "abcab"])
def test_communicators_and_their_parts_reach_ranks_of_all_hosts(hosts):
    job = Job(hosts)
    results = on_ranks(job, collect)
    for rank, facts in enumerate(results):
        assert isinstance(facts, dict), facts
        for total, job_ranks, number, groups, processes in facts.values():
            assert total == sum(2.0**member for member in job_ranks)
            names = [[hosts[job_ranks[member]] for member in group] for group in groups]
            assert all(len(set(group)) == 1 for group in names)
            assert len(groups) == len({hosts[member] for member in job_ranks})
            for member, process in zip(job_ranks, processes, strict=True):
                assert (process != 0) == (hosts[member] == hosts[rank])
                assert results[member] is not None
            for member in job_ranks:
                assert number in [each[2] for each in results[member].values()]
        numbers = [each[2] for each in facts.values()]
        assert len(set(numbers)) == len(numbers)


def measure_leftovers(job, rank):
    before = open_descriptors(), threading.active_count(), len(os.listdir("/proc/self/task"))
    for _ in range(2):
        with connected(job, rank) as comm:
            comm.barrier()
            comm.duplicate().barrier()
        del comm
    return before, (open_descriptors(), threading.active_count(), len(os.listdir("/proc/self/task")))


def test_nothing_is_left_behind_when_the_last_communicator_is_closed():
    job = Job("ab")
    started = [Started(measure_leftovers, job, rank) for rank in range(2)]
    for each in started:
        before, after = each.result(time.monotonic() + LIMIT_S)
        each.end()
        assert before == after


def test_a_forked_child_does_not_disturb_the_courier():
    assert on_ranks(Job("ab"), fork_a_child) == [(7, 2.0)] * 2


def fork_after_the_end(comm):
    comm.close()
    child = os.fork()
    if child == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_may_be_forked_after_a_communicator_is_closed():
    assert on_ranks(Job("ab"), fork_after_the_end) == [7] * 2


def interrupt_the_close(comm):
    def interrupted():
        raise KeyboardInterrupt

    comm._link.before_close.append(interrupted)
    with pytest.raises(KeyboardInterrupt):
        comm.close()
    return len(os.listdir("/proc/self/task"))


def test_an_interrupted_close_still_leaves_and_ends_the_courier():
    tasks = on_ranks(Job("ab"), interrupt_the_close)
    assert tasks == on_ranks(Job("ab"), lambda comm: comm.close() or len(os.listdir("/proc/self/task")))


def test_a_port_range_that_is_taken_is_named():
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        results = on_ranks(Job("ab", ports=range(port, port + 1)), lambda comm: None)
    assert any(result[1] == network_messages.COURIER_CANNOT_LISTEN.id for result in results)
    for result in results:
        assert f"127.0.0.1:{port}-{port}: Address already in use" in result[2]


# ---- connect() -----------------------------------------------------------------------------------------------------


def call_connect(port, rank, size, **arguments):
    identity = RankIdentity(rank, size, 0, 1, "alone", "")
    try:
        with unisono.connect(
            identity=identity, rendezvous=f"127.0.0.1:{port}", connect_timeout=20.0, **arguments
        ) as comm:
            x = np.ones(3)
            comm.all_reduce(x)
            return x[0], comm.hosts
    except UnisonoError as error:
        return error.id, str(error)


def results_of(*started):
    try:
        return [each.result(time.monotonic() + LIMIT_S) for each in started]
    finally:
        for each in started:
            each.end()


def connect_with(port, rank, size, arguments):
    return call_connect(port, rank, size, **arguments)


def test_ranks_that_the_launcher_does_not_place_share_memory_if_they_can():
    port = free_port()
    arguments = {"token": TOKEN}
    results = results_of(*(Started(connect_with, port, rank, 3, arguments) for rank in range(3)))
    assert results == [(3.0, ((0, 1, 2),))] * 3


def test_connect_refuses_a_job_on_several_hosts_without_a_token():
    assert call_connect(free_port(), 0, 2)[0] == network_messages.NO_TOKEN.id


def test_connect_says_how_to_state_the_address_if_the_launcher_does_not(monkeypatch):
    for name, value in {"RANK": 0, "SIZE": 4, "LOCAL_RANK": 0, "LOCAL_SIZE": 2}.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", str(value))
    monkeypatch.setenv("PMIX_NAMESPACE", "a job")
    with pytest.raises(unisono.UsageError, match="openmpi has started 4 ranks, 2 of them on this host") as caught:
        unisono.connect(token=TOKEN)
    assert caught.value.id == network_messages.NO_RENDEZVOUS.id


def test_connect_reads_the_address_and_the_token_of_unisono_run(monkeypatch, tmp_path):
    variables = {
        "UNISONO_JOB": str(tmp_path), "UNISONO_SIZE": "2", "UNISONO_LOCAL_RANK": "0", "UNISONO_LOCAL_SIZE": "1",
        "UNISONO_RENDEZVOUS": f"127.0.0.1:{free_port()}", "UNISONO_TOKEN": TOKEN,
    }  # fmt: skip

    def run(rank):
        os.environ.update({**variables, "UNISONO_RANK": str(rank)})
        with unisono.connect(connect_timeout=20.0) as comm:
            comm.barrier()
            return comm.rank, comm.size

    assert results_of(Started(run, 0), Started(run, 1)) == [(0, 2), (1, 2)]


@pytest.mark.slow
@needs_namespaces
def test_ranks_in_containers_that_share_a_network_communicate():
    def contained(port, rank):
        enter_new(NEW_PROCESSES)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            result = call_connect(port, rank, 3, token=TOKEN)
            os.write(writer, repr(result).encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        return os.read(reader, 1 << 16).decode()

    port = free_port()
    arguments = {"token": TOKEN}
    started = [Started(connect_with, port, rank, 3, arguments) for rank in range(2)]
    results = results_of(*started, Started(contained, port, 2))
    assert results[0] == (3.0, ((0, 1), (2,)))
    assert results[2] == repr(results[0])
