"""The native event loop computes the same times as the loop in Python, and the critical path adds up."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import unisono
from unisono import networks
from unisono.algorithms.catalogue import BUILT_IN
from unisono.simulator import events, simulation
from unisono.simulator.actions import room_of
from unisono.simulator.costs import costs_of
from unisono.simulator.reference_flows import fair_rates

IDEAL = networks.ideal(1e-6, 1e10, 5e-11)
HOSTS = replace(
    IDEAL, name="hosts of three ranks", ranks_per_host=3, near=networks.Near("memory", 2e-7, 2e10),
    endpoint=networks.Endpoint(
        1e-7, 2e-7, 1e-11, 2e-11, 3e-11, 4e-11, eager_bytes=4096, rendezvous_s=3e-6, ports=2
    ),
)  # fmt: skip
PARTS = ("latency_s", "bandwidth_s", "overhead_s", "copy_s", "reduce_s", "waiting_s")


def schedule_of(algorithm, size):
    return algorithm.schedule(size, size - 1 if algorithm.collective.rooted else None)


@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
@pytest.mark.parametrize("network", [IDEAL, HOSTS], ids=["ideal", "hosts"])
def test_both_loops_compute_the_same_times(algorithm, network):
    for size, nbytes, segments in ((5, 100, None), (8, 1 << 16, 5)):
        schedule = schedule_of(algorithm, size)
        programs = simulation.rank_by_rank(schedule, network)
        sent = programs.most_sent
        cut = simulation.cut_for(schedule, algorithm.collective, sent, nbytes, network, None, "float32", segments)
        costs, room = costs_of(programs, network, cut), room_of(programs, 8)
        for bandwidth in (None, network.links(size).bandwidth):
            native = events.run(programs, costs, room, bandwidth)
            python = events.run_in_python(programs, costs, room, bandwidth)
            assert np.array_equal(native.times.start, python.times.start)
            assert np.array_equal(native.times.level, python.times.level)
            assert np.allclose(native.idle_s, python.idle_s, rtol=0, atol=1e-12)
            assert np.array_equal(events.run(programs, costs, room, bandwidth, record=False).unit_s, python.unit_s)


@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
def test_the_parts_of_the_critical_path_add_up_and_no_bound_is_missed(algorithm):
    for size in (1, 2, 3, 7, 13):
        for network in (IDEAL, HOSTS):
            predicted = unisono.simulate(schedule_of(algorithm, size), 1 << 18, network)
            path = predicted.critical_path
            assert sum(getattr(path, part) for part in PARTS) == pytest.approx(predicted.time_s, abs=1e-12)
            assert all(getattr(path, part) >= -1e-15 for part in PARTS)
            assert predicted.time_s >= max(predicted.latency_bound_s, predicted.bandwidth_bound_s) * (1 - 1e-6)


def test_the_critical_path_of_a_long_queue_is_found():
    predicted = unisono.simulate(unisono.find("scatter/naive").schedule(1500, 0), 1 << 20, "one-switch")
    assert len(predicted.critical_path.hops) > 1
    assert predicted.critical_path.waiting_s == pytest.approx(0.0, abs=1e-12)


def test_levels_are_those_of_the_proof():
    for name in ("all_reduce/ring", "all_reduce/rabenseifner", "broadcast/tree", "all_gather/bruck", "reduce/tree"):
        algorithm = unisono.find(name)
        schedule = schedule_of(algorithm, 7)
        predicted = unisono.simulate(schedule, 1 << 16, IDEAL)
        assert len(predicted.level_s) == unisono.prove(schedule).levels
        assert predicted.level_s[-1] == pytest.approx(predicted.time_s)


def test_without_the_extension_the_loop_in_python_is_used():
    program = (
        "import sys; sys.modules['unisono._engine'] = None\n"
        "import unisono\n"
        "print(unisono.simulate(unisono.find('all_reduce/ring').schedule(5), 1 << 20, 'ideal').time_s)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    native = unisono.simulate(unisono.find("all_reduce/ring").schedule(5), 1 << 20, "ideal")
    assert float(printed) == native.time_s


def test_flows_share_links_max_min_fair():
    assert fair_rates([[0], [0, 1], [1]], np.array([1.0, 3.0])) == [0.5, 0.5, 2.5]


def test_two_messages_over_one_link_take_twice_as_long():
    two_on_a_host = replace(IDEAL, name="shared NIC", ranks_per_host=2, endpoint=networks.Endpoint())
    neighbour = unisono.find("all_gather/ring").schedule(4)
    alone = unisono.simulate(neighbour, 4 << 20, two_on_a_host, segments=1, contention=False)
    pairs = unisono.find("all_to_all/pairwise").schedule(4)
    shared = unisono.simulate(pairs, 4 << 20, two_on_a_host, segments=1)
    free = unisono.simulate(pairs, 4 << 20, two_on_a_host, segments=1, contention=False)
    assert alone.contention is False
    assert shared.contention is True
    assert shared.time_s > 1.3 * free.time_s


def test_wrong_programs_are_reported_with_the_error_of_the_verifier():
    @unisono.algorithm(unisono.collectives.all_reduce, chunks=unisono.one)
    def lost(rank, size):
        if rank == 0:
            yield unisono.send(0, dst=1)

    with pytest.raises(unisono.UnmatchedError):
        unisono.simulate(lost.schedule(3), 8, IDEAL)

    @unisono.algorithm(unisono.collectives.all_reduce, chunks=unisono.one)
    def stuck(rank, size):
        yield unisono.recv_reduce(0, src=(rank + 1) % size)
        yield unisono.send(0, dst=(rank - 1) % size)

    with pytest.raises(unisono.DeadlockError):
        unisono.simulate(stuck.schedule(3), 8, IDEAL)
