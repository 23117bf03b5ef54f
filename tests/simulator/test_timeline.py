"""The timeline of a prediction has the messages and steps of the schedule, and the load of links adds up."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import unisono
from unisono import networks
from unisono.algorithms.catalogue import BUILT_IN
from unisono.schedule.ops import RECV, RECV_REDUCE, SEND
from unisono.simulator import link_use, reference_flows
from unisono.simulator.sweep import Sweep, takeovers

TWO_LEVELS = networks.read_text(
    """
    name = "hosts of three"
    ranks_per_host = 3
    [endpoint]
    call_overhead = "2 us"
    reduce_per_byte = "10 GB/s"
    segment = "1 KiB"
    [near]
    kind = "switch"
    latency = "1 us"
    bandwidth = "50 GB/s"
    [nic]
    latency = "5 us"
    bandwidth = "10 GB/s"
    """,
    "two_levels.toml",
)
SHARED_MEMORY = networks.load("xeon-16-cores")


def steps_of(schedule):
    """Return the steps that send and receive each message, by sender and receiver, in the order of the channel."""
    sent, received = defaultdict(list), defaultdict(list)
    for rank in range(schedule.size):
        for number, step in enumerate(schedule.program(rank)):
            for op in step:
                if op.kind == SEND:
                    sent[rank, op.other].append(number)
                elif op.kind in (RECV, RECV_REDUCE):
                    received[op.other, rank].append(number)
    return sent, received


@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
def test_messages_happen_in_the_steps_of_the_schedule(algorithm):
    for size, network in ((1, TWO_LEVELS), (2, SHARED_MEMORY), (6, TWO_LEVELS), (7, SHARED_MEMORY)):
        schedule = algorithm.schedule(size)
        predicted = unisono.simulate(schedule, 24_000, network, timeline=True)
        timeline = predicted.timeline
        sent, received = steps_of(schedule)
        pairs = list(zip(timeline.source.tolist(), timeline.target.tolist(), strict=True))
        assert pairs == [pair for pair in sorted(sent) for _ in sent[pair]]
        assert timeline.leave_s.shape == (predicted.passes, len(pairs))
        for column, (source, target) in enumerate(pairs):
            number = column - pairs.index((source, target))
            leave, arrival, done = (
                each[:, column] for each in (timeline.leave_s, timeline.arrival_s, timeline.done_s)
            )
            assert (leave <= arrival).all()
            assert (arrival <= done).all()
            assert done.max() <= timeline.step_s[target][received[source, target][number]]
            assert number == 0 or (leave >= timeline.leave_s[:, column - 1]).all()
        ends = [each[-1] for each in timeline.step_s if len(each)]
        assert max(ends, default=predicted.time_s) == pytest.approx(predicted.time_s, abs=1e-15)
        assert [len(each) for each in timeline.step_s] == [len(list(schedule.program(rank))) for rank in range(size)]


def test_a_ring_on_the_ideal_network_moves_in_step():
    size, nbytes = 5, 50_000
    timeline = unisono.simulate(unisono.find("ring").schedule(size), nbytes, "ideal", timeline=True).timeline
    hop_s = 1e-6 + nbytes / size * 1e-10
    expected = np.tile(np.arange(2 * (size - 1)) * hop_s, size)
    assert timeline.leave_s[0] == pytest.approx(expected, abs=1e-12)
    assert timeline.arrival_s[0] == pytest.approx(expected + hop_s, abs=1e-12)


def test_a_timeline_does_not_change_the_prediction():
    schedule = unisono.find("rabenseifner").schedule(13)
    with_it = unisono.simulate(schedule, 1 << 16, "dgx-h100", timeline=True)
    without = unisono.simulate(schedule, 1 << 16, "dgx-h100")
    assert (with_it.time_s, without.timeline) == (without.time_s, None)


@pytest.mark.parametrize(
    ("name", "size", "network", "nbytes"),
    [
        ("ring", 8, "ideal", 1 << 16),
        ("ring", 16, "dgx-h100", 1 << 20),
        ("all_to_all/pairwise", 13, "fugaku", 1 << 18),
        ("all_to_all/naive", 16, "leonardo", 1 << 20),
        ("ring", 7, "xeon-16-cores", 1 << 20),
        ("direct", 6, TWO_LEVELS, 1 << 16),
    ],
)
def test_the_use_of_a_link_adds_up_to_the_bytes_that_it_carries(name, size, network, nbytes):
    schedule = unisono.find(name).schedule(size)
    predicted = unisono.simulate(schedule, nbytes, network, timeline=True)
    record = networks.load(network) if isinstance(network, str) else network
    links = record.for_messages(size, nbytes / schedule.chunks).links(size)
    use = predicted.timeline.use
    assert use.used.min() >= 0
    assert use.used.max() <= 1
    carried = {}
    for link in np.unique(use.link).tolist():
        times, used = use.time_s[use.link == link], use.used[use.link == link]
        assert used[-1] == 0
        carried[links.name(link)] = float((used[:-1] * np.diff(times)).sum() * links.bandwidth[link])
    assert len(predicted.links) > 0
    for load in predicted.links:
        assert carried[load.name] == pytest.approx(load.bytes, rel=1e-6)


def test_fair_rates_are_those_of_the_reference():
    random = np.random.default_rng(1)
    for _ in range(50):
        bandwidth = random.integers(1, 5, 6).astype(float)
        routes = [random.choice(6, random.integers(1, 4), replace=False).tolist() for _ in range(8)]
        padded = np.array([route + [-1] * (3 - len(route)) for route in routes])
        expected = reference_flows.fair_rates(routes, bandwidth)
        assert link_use.fair_rates(padded, bandwidth) == pytest.approx(expected)


@pytest.mark.parametrize(("size", "network"), [(6, "ideal"), (13, "dgx-h100"), (70, "fugaku"), (5, TWO_LEVELS)])
def test_a_sweep_has_the_times_of_simulate(size, network):
    schedule = unisono.find("ring").schedule(size)
    record = networks.load(network) if isinstance(network, str) else network
    sweep = Sweep(schedule, record)
    for nbytes in (8, 5000, 1 << 20):
        assert sweep.time_s(nbytes) == unisono.simulate(schedule, nbytes, record).time_s


@pytest.mark.parametrize("size", [4, 8, 16])
def test_ring_takes_over_from_recursive_doubling_at_the_size_of_the_formula(size):
    alpha, beta, rounds = 1e-6, 1e-10, size.bit_length() - 1
    sweeps = [
        Sweep(unisono.find(name).schedule(size), networks.load("ideal")) for name in ("ring", "recursive_doubling")
    ]
    found = takeovers(sweeps, [8 << power for power in range(28)])
    equal = alpha * (2 * (size - 1) - rounds) / (beta * (rounds - 2 * (size - 1) / size))
    assert [index for _, index in found] == [1, 0]
    assert found[1][0] == pytest.approx(equal, rel=0.011)
    assert sweeps[0].time_s(found[1][0]) < sweeps[1].time_s(found[1][0])


def test_schedules_that_are_equally_fast_do_not_take_turns():
    sweep = Sweep(unisono.find("ring").schedule(3), networks.load("ideal"))
    assert takeovers([sweep, sweep], [8, 1 << 20]) == [(8, 0)]
