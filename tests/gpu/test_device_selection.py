"""The algorithm of a call on GPUs follows from the predicted times of its device programs."""

from __future__ import annotations

import pytest

from builders import SIZES
from unisono.algorithms import find
from unisono.collectives import COLLECTIVES, all_gather, all_reduce, broadcast, reduce_scatter
from unisono.gpu.costs import KERNEL_RATES, STREAM_RATES, DeviceRates, cost_of, fastest
from unisono.gpu.lowering import lower_for_device
from unisono.gpu.selection import choose_for_device
from unisono.verifier import proved


@pytest.mark.parametrize("nbytes", [0, 1024, 2**20, 2**28])
@pytest.mark.parametrize("size", [2, 3, 8])
def test_all_reduce_adds_and_stores_to_all_at_once(size, nbytes):
    assert choose_for_device(all_reduce, size, None, nbytes).name == "direct"
    assert choose_for_device(all_reduce, size, None, nbytes, STREAM_RATES).name == "direct"


@pytest.mark.parametrize("collective", [all_gather, reduce_scatter])
def test_blocks_go_straight_to_their_receivers(collective):
    assert choose_for_device(collective, 8, None, 2**24).name == "naive"


@pytest.mark.parametrize("size", [pytest.param(size, marks=[pytest.mark.long] if size > 7 else []) for size in SIZES])
def test_every_collective_has_an_algorithm_for_every_size(size):
    for collective in COLLECTIVES:
        root = size - 1 if collective.rooted else None
        chosen = choose_for_device(collective, size, root, 10**6)
        assert chosen.collective is collective
        assert chosen.can_serve(size)


def test_the_best_algorithm_that_may_be_used_is_chosen():
    without_best = choose_for_device(
        all_reduce, 8, None, 2**20, may_be_used=lambda schedule: not schedule.label.endswith("direct")
    )
    assert without_best.name != "direct"
    made = proved(without_best.schedule(8))
    direct = proved(find("direct").schedule(8))
    assert fastest(made, False, 2**20)[1] >= fastest(direct, False, 2**20)[1]


def test_the_time_is_that_of_the_synchronizations_and_of_the_bytes():
    """Direct all-reduce on 4 ranks: entry and one round; each rank reads and writes 4 quarters."""
    rates = DeviceRates(sync_s=1.0, barrier_s=0.25, move_s=0.125, bytes_per_s=1000.0, concurrent=True)
    lowered = lower_for_device(proved(find("direct").schedule(4)))
    assert cost_of(lowered).time(4000, rates) == pytest.approx(2 * 1.0 + 0.25 + 0.125 + 8 * 1000 / (1000 / 4))


def test_a_ring_waits_for_each_of_its_steps():
    rates = DeviceRates(sync_s=1.0, barrier_s=0.0, move_s=0.0, bytes_per_s=1e30, concurrent=True)
    lowered = lower_for_device(proved(find("ring").schedule(5)))
    assert cost_of(lowered).time(100, rates) == pytest.approx(1 + 8)


def moved_by_each_rank(collective, size, root, nbytes, rates):
    """Return the chunks that each rank reads and writes."""
    chosen = choose_for_device(collective, size, root, nbytes, rates)
    lowered, _ = fastest(proved(chosen.schedule(size, root)), False, nbytes, rates)
    return [
        sum(len(move.sources) + len(move.destinations) for step in steps for move in step.moves)
        for steps in lowered.programs
    ]


def test_two_ranks_share_the_work_of_a_long_broadcast_if_they_use_the_gpu_at_the_same_time():
    first, second = moved_by_each_rank(broadcast, 2, 1, 2**26, KERNEL_RATES)
    assert first == second > 0
    assert 0 in moved_by_each_rank(broadcast, 2, 1, 2**26, STREAM_RATES)
    assert 0 in moved_by_each_rank(broadcast, 2, 1, 2**10, KERNEL_RATES)


def test_times_grow_with_the_bytes():
    for name in ("direct", "ring", "reduce_scatter/ring", "all_to_all/bruck"):
        cost = cost_of(lower_for_device(proved(find(name).schedule(7))))
        times = [cost.time(2**power, KERNEL_RATES) for power in range(10, 34, 3)]
        assert times == sorted(times)
