"""A communicator that is told about several hosts: the programs of the choice for them run, and agree with numpy.

The ranks of these tests share a machine. Hosts with two ranks each use no channel to all, so that the ranks may be
placed on any hosts.
"""

from __future__ import annotations

import numpy as np
import pytest

import unisono
from unisono.collectives import COLLECTIVES, barrier
from unisono.comm.explain_call import explain_call
from unisono.errors import MismatchError

CONSECUTIVE, ROUND_ROBIN = ((0, 1), (2, 3)), ((0, 2), (1, 3))
ALONE = ((0,), (1,), (2,), (3,))


def results(comm, hosts):
    """Make every call at three sizes; return those whose results are wrong, and their predicted bytes."""
    comm.dispatcher.hosts = hosts
    size, rank, wrong = comm.size, comm.rank, []
    for count in (4, 4 * 1024, 4 * 300_000):
        part = count // size
        vectors = [np.arange(count, dtype=np.int64) * (peer + 1) for peer in range(size)]
        mine, total = vectors[rank], sum(vectors)
        blocks = [vectors[peer][:part] for peer in range(size)]
        before = comm.sent_bytes
        x = mine.copy()
        comm.all_reduce(x)
        if comm.sent_bytes - before != comm.predict_sent_bytes("all_reduce", count, dtype="int64"):
            wrong.append(("sent bytes", count))
        checks = [("all_reduce", (x == total).all())]
        out = np.zeros(count, np.int64)
        comm.all_gather(out, blocks[rank])
        checks.append(("all_gather", (out == np.concatenate(blocks)).all()))
        out = np.zeros(part, np.int64)
        comm.reduce_scatter(out, mine)
        checks.append(("reduce_scatter", (out == total[rank * part : (rank + 1) * part]).all()))
        out = np.zeros(count, np.int64)
        comm.all_to_all(out, mine)
        wanted = np.concatenate([vector[rank * part : (rank + 1) * part] for vector in vectors])
        checks.append(("all_to_all", (out == wanted).all()))
        for root in range(size):
            x = mine.copy()
            comm.broadcast(x, root=root)
            checks.append(("broadcast", (x == vectors[root]).all()))
            x = mine.copy()
            comm.reduce(x, root=root)
            checks.append(("reduce", rank != root or (x == total).all()))
            out = np.zeros(count, np.int64) if rank == root else None
            comm.gather(out, blocks[rank], root=root)
            checks.append(("gather", out is None or (out == np.concatenate(blocks)).all()))
            out = np.zeros(part, np.int64)
            comm.scatter(out, mine if rank == root else None, root=root)
            checks.append(("scatter", (out == vectors[root][rank * part : (rank + 1) * part]).all()))
        comm.barrier()
        wrong += [(name, count) for name, right in checks if not right]
    return wrong


@pytest.mark.parametrize("hosts", [CONSECUTIVE, ROUND_ROBIN, ALONE], ids=["2x2", "round robin", "4x1"])
def test_every_collective_is_right_on_several_hosts(hosts):
    assert unisono.spawn(results, 4, hosts, timeout=120.0) == [[]] * 4


def facts(comm, hosts):
    comm.dispatcher.hosts = hosts
    predicted = [comm.predict_sent_bytes("all_reduce", 1 << 20, far=far) for far in (None, True, False)]
    explained = comm.explain("all_reduce", 1 << 22)
    given = comm.dispatcher.program(unisono.collectives.all_reduce, "hierarchical", None, 8).name
    return comm.hosts, predicted, explained, given


def test_the_communicator_states_its_hosts_and_divides_predicted_bytes():
    for hosts, predicted, explained, given in unisono.spawn(facts, 4, ROUND_ROBIN):
        assert hosts == ROUND_ROBIN
        # half of the vector, summed inside the host, crosses the link of two ranks: a quarter twice per rank
        assert predicted == [6 << 20, 2 << 20, 4 << 20]
        assert explained == explain_call("all_reduce", 1 << 22, size=4, table={}, hosts=ROUND_ROBIN)
        assert explained.topology == "2x2"
        assert given == "hierarchical(node=((0, 2), (1, 3)))"
    assert unisono.spawn(lambda comm: comm.hosts, 2) == [((0, 1),), ((0, 1),)]


def disagree(comm):
    comm.dispatcher.hosts = CONSECUTIVE if comm.rank == 0 else ALONE
    x = np.ones(4)
    try:
        comm.all_reduce(x, algorithm="ring")
    except MismatchError:
        return "mismatch"
    return "no error"


def test_ranks_that_know_different_hosts_do_not_communicate():
    assert "mismatch" in unisono.spawn(disagree, 4)


def test_there_is_a_rule_for_every_collective_on_several_hosts():
    for collective in COLLECTIVES:
        assert explain_call(collective, 8, size=4, table={}, hosts=CONSECUTIVE).algorithm
    assert explain_call(barrier, 0, size=4, table={}, hosts=CONSECUTIVE).algorithm == "hierarchical"
