"""Ranks in containers: incompatible namespaces are detected at once; compatible ones do not matter."""

from __future__ import annotations

import os
import pickle
import time

import pytest

from containers import NEW_NETWORK, NEW_PROCESSES, enter_new, needs_namespaces
from rendezvous_faults import FORK, LIMIT_S, Started, rank_of, site
from unisono.bootstrap.locality import host_info, incompatibility

pytestmark = pytest.mark.slow


def rank_in_new(kind, where, rank, come):
    """Connect as a rank in a new namespace, once another rank is connected."""
    if rank:
        come.wait(10)
    enter_new(kind)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, pickle.dumps(rank_of(where, rank, 20.0)))
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    return pickle.loads(os.read(reader, 1 << 16))


def connect_across(kind, address, inside):
    """Connect ranks, one of them in another namespace; return their results."""
    come = FORK.Event()
    with site(address, 3 if inside else 2) as where:
        ranks = [
            Started(rank_in_new, kind, where, rank, come)
            if rank == inside
            else Started(rank_of, where, rank, 20.0, 0.0, come if rank else None)
            for rank in range(where.size)
        ]
        try:
            ends_s = time.monotonic() + LIMIT_S
            return [rank.result(ends_s) for rank in ranks]
        finally:
            for rank in ranks:
                rank.end()


@needs_namespaces
@pytest.mark.parametrize("address", ["directory", "named"])
def test_a_rank_in_another_pid_namespace_is_named_at_once_by_all(address):
    for found in connect_across(NEW_PROCESSES, address, 1):
        assert found.kind == "UsageError", found
        assert "connect: rank 1 is in another PID namespace (container) than rank 0: pid:[" in found.text
        assert "--pid=host" in found.text
        assert found.seconds < 5


@needs_namespaces
def test_rank_0_in_another_pid_namespace_is_reported_at_once():
    for found in connect_across(NEW_PROCESSES, "directory", 0):
        assert found.kind == "UsageError", found
        assert "is in another PID namespace (container) than rank 0" in found.text
        assert found.seconds < 5


@needs_namespaces
@pytest.mark.parametrize("inside", [0, 1])
def test_ranks_that_share_a_directory_may_be_in_different_network_namespaces(inside):
    found = connect_across(NEW_NETWORK, "directory", inside)
    assert [one.value for one in found] == [len(found)] * len(found), found


HERE = {
    "kernel": "k", "host": "alpha", "network": "net:[1]", "processes": "pid:[1]", "users": "user:[1]", "user": "0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ({}, None),
        ({"host": "beta"}, None),
        ({"network": "", "processes": ""}, None),  # a system that does not state its namespaces
        ({"kernel": "other", "host": "beta"}, "rank 0 is on beta, rank 3 on alpha"),
        (
            {"network": "net:[2]"},
            "rank 3 is in another network namespace (container) than rank 0: net:[1] and",
        ),
        ({"processes": "pid:[2]"}, "rank 3 is in another PID namespace (container) than rank 0: pid:[1] and"),
        ({"user": "7"}, "rank 0 runs as user 7, rank 3 as user 0; hint: start all ranks as one user"),
        ({"user": "7", "users": "user:[2]"}, None),  # user ids have a meaning only inside a namespace
    ],
)
def test_the_reason_why_two_ranks_are_incompatible_is_stated(theirs, reason):
    found = incompatibility(3, HERE, {**HERE, **theirs})
    assert (found is None) if reason is None else (reason in found)


def test_a_process_is_compatible_with_itself():
    assert incompatibility(1, host_info(), host_info()) is None
