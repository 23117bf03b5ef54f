"""The costs of an endpoint that published measurements of MPI libraries show."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import unisono
from unisono import networks
from unisono.networks import Endpoint
from unisono.networks.endpoint import ALL_SENDS, LONG_SENDS

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


def test_the_delay_of_a_rendezvous_grows_with_the_rendezvous_before_it():
    costs = {"eager_bytes": 100, "rendezvous_s": 2e-6, "jitter_s": 3e-6}
    for size in (2, 3, 5, 8, 13):
        steps = [LATENCY + 1000 / BANDWIDTH + 2e-6 + 3e-6 * math.log(k) for k in range(1, size)]
        assert time_of("all_gather/ring", size, 1000 * size, **costs) == pytest.approx(sum(steps))


def test_short_messages_of_a_rendezvous_are_delayed_less_and_eager_ones_are_not():
    costs = {"rendezvous_s": 0.0, "jitter_s": 3e-6, "jitter_bytes": 4000}
    plain = time_of("all_gather/ring", 3, 3000)
    assert time_of("all_gather/ring", 3, 3000, eager_bytes=100, **costs) == pytest.approx(
        plain + 3e-6 * math.log(2) / 4
    )
    assert time_of("all_gather/ring", 3, 3000, eager_bytes=2000, **costs) == pytest.approx(plain)


def test_a_step_with_many_messages_is_one_rendezvous_for_its_rank():
    costs = {"eager_bytes": 100, "jitter_s": 3e-6, "ports": 7}
    assert time_of("all_to_all/naive", 8, 64000, **costs) == pytest.approx(
        time_of("all_to_all/naive", 8, 64000, eager_bytes=100, ports=7)
    )


def test_a_library_whose_sends_block_waits_for_each_message_of_a_linear_scatter():
    message = 1000 / BANDWIDTH
    long = {"eager_bytes": 100, "rendezvous_s": 2e-6}
    for size in (2, 3, 5, 6, 7, 13):
        rest = size - 1
        buffered = time_of("scatter/naive", size, 1000 * size, **long)
        assert buffered == pytest.approx(2e-6 + rest * message + LATENCY)
        for sends in (LONG_SENDS, ALL_SENDS):
            blocking = time_of("scatter/naive", size, 1000 * size, blocking_sends=sends, **long)
            assert blocking == pytest.approx(rest * (2e-6 + message) + LATENCY)


def test_eager_sends_block_only_where_all_do():
    eager = {"eager_bytes": 2000, "inline_bytes": 0, "fetch_s": 5e-7}
    buffered = time_of("scatter/naive", 4, 4000, **eager)
    assert time_of("scatter/naive", 4, 4000, blocking_sends=LONG_SENDS, **eager) == pytest.approx(buffered)
    assert time_of("scatter/naive", 4, 4000, blocking_sends=ALL_SENDS, **eager) == pytest.approx(buffered + 2 * 5e-7)


def test_blocking_sends_do_not_slow_down_a_rank_that_receives_in_every_step():
    costs = {"eager_bytes": 100, "rendezvous_s": 2e-6}
    for name in ("all_gather/ring", "all_reduce/recursive_doubling", "all_reduce/rabenseifner"):
        assert time_of(name, 8, 64000, blocking_sends=ALL_SENDS, **costs) == time_of(name, 8, 64000, **costs)


def test_folding_gives_the_same_times_with_delays_and_blocking_sends():
    endpoint = Endpoint(
        eager_bytes=100, rendezvous_s=2e-6, jitter_s=3e-6, jitter_bytes=4000, blocking_sends=ALL_SENDS
    )
    network = replace(WIRE, endpoint=endpoint)
    for name in ("all_reduce/ring", "all_reduce/recursive_doubling", "all_gather/bruck"):
        schedule = unisono.find(name).schedule(13)
        folded, single = (unisono.simulate(schedule, 13000, network, segments=1, fold=fold) for fold in (True, False))
        assert folded.time_s == pytest.approx(single.time_s)


@pytest.mark.parametrize(
    ("buffers", "fresh"),
    [
        ((), 0),
        ((1 << 20,), 0),  # kept by the heap
        ((1 << 20, 1 << 19), 0),
        ((1 << 20, 1 << 20), 2 << 20),  # more than the heap keeps
        ((1 << 17, 1 << 17), 0),  # short
        ((32 << 20,), 32 << 20),
        ((64 << 20, 1 << 20), 64 << 20),
    ],
)
def test_long_or_several_temporary_buffers_come_from_the_system(buffers, fresh):
    assert Endpoint(mapped_bytes=32 << 20, trims_heap=True).fresh_bytes(buffers) == fresh
    if len(set(buffers)) < len(buffers):
        assert Endpoint(mapped_bytes=32 << 20).fresh_bytes(buffers) == 0


def test_buffers_that_are_only_received_into_cost_nothing_and_fill_the_heap():
    end = Endpoint(mapped_bytes=32 << 20, trims_heap=True)
    assert end.fresh_bytes([], [64 << 20]) == 0
    assert end.fresh_bytes([1 << 20], [1 << 20]) == 1 << 20
    assert end.fresh_bytes([1 << 20], [1 << 18]) == 0
