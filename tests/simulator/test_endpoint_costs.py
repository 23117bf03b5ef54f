"""The costs of an endpoint that published measurements of MPI libraries show."""

from __future__ import annotations

from dataclasses import replace

import pytest

import unisono
from unisono import networks
from unisono.networks import Endpoint

LATENCY, BANDWIDTH = 1e-6, 1e10
WIRE = networks.ideal(LATENCY, BANDWIDTH)


def time_of(name, size, nbytes, **endpoint):
    network = replace(WIRE, endpoint=Endpoint(**endpoint))
    algorithm = unisono.find(name)
    schedule = algorithm.schedule(size, 0 if algorithm.collective.rooted else None)
    return unisono.simulate(schedule, nbytes, network, segments=1, depth=None).time_s


def test_a_call_has_an_entry_cost():
    assert time_of("broadcast/tree", 2, 1000, call_overhead_s=5e-6) == pytest.approx(5e-6 + LATENCY + 1e-7)


@pytest.mark.parametrize(("nbytes", "fetched"), [(200, 0.0), (400, 7e-7)])
def test_messages_that_are_not_inline_are_fetched_first(nbytes, fetched):
    time = time_of("broadcast/tree", 2, nbytes, inline_bytes=200, fetch_s=7e-7)
    assert time == pytest.approx(LATENCY + fetched + nbytes / BANDWIDTH)


def test_eager_messages_are_staged_and_longer_ones_make_further_trips():
    costs = {"eager_bytes": 1000, "eager_s_per_byte": 4e-10, "rendezvous_s": 2e-6, "rendezvous_trips": 3}
    assert time_of("broadcast/tree", 2, 1000, **costs) == pytest.approx(LATENCY + 1000 * (4e-10 + 1 / BANDWIDTH))
    assert time_of("broadcast/tree", 2, 2000, **costs) == pytest.approx(4 * LATENCY + 2e-6 + 2000 / BANDWIDTH)


def test_staging_of_messages_that_follow_each_other_overlaps():
    single = time_of("scatter/naive", 2, 2000, eager_bytes=1000, eager_s_per_byte=4e-10)
    many = time_of("scatter/naive", 9, 9000, eager_bytes=1000, eager_s_per_byte=4e-10)
    assert many == pytest.approx(single + 7 * 1000 / BANDWIDTH)


def test_a_single_exchange_of_long_messages_takes_turns_and_a_ring_does_not():
    full, long = 1000 / BANDWIDTH, 5000 / BANDWIDTH
    assert time_of("all_reduce/recursive_doubling", 2, 5000, exchange_bytes=1000) == pytest.approx(
        LATENCY + full + 2 * (long - full)
    )
    ring = time_of("all_gather/ring", 3, 15000, exchange_bytes=1000)
    assert ring == pytest.approx(2 * (LATENCY + long))


def test_a_library_that_keeps_its_input_copies_the_vector_of_a_reduction_first():
    costs = {"copy_s_per_byte": 1e-9, "cache_bytes": 2000, "beyond_cache": 3.0}
    for nbytes, factor in ((1000, 1.0), (4000, 3.0)):
        copied = time_of("all_reduce/ring", 2, nbytes, copies_input=True, **costs)
        assert copied == pytest.approx(time_of("all_reduce/ring", 2, nbytes, **costs) + factor * nbytes * 1e-9)
    assert time_of("all_gather/ring", 2, 1000, copies_input=True, **costs) == pytest.approx(LATENCY + 500 / BANDWIDTH)
