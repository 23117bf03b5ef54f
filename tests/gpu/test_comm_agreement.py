"""The ranks derive the same mode, budget and errors from the facts about all of their GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unisono.errors import UsageError
from unisono.gpu.agreement import GpuFacts, agree
from unisono.message import translated

H200 = GpuFacts(board=4096, name="NVIDIA H200", uuid="a0", multiprocessors=132, pipe_directory="/tmp/mps")
OTHER = replace(H200, uuid="b1", board=0)


def under_mps(facts: GpuFacts, directory: str = "/tmp/mps") -> GpuFacts:
    return replace(facts, mps=True, pipe_directory=directory)


@pytest.mark.parametrize(
    ("ranks", "mode", "reason"),
    [
        ([H200], "kernel", "gpu.one_rank_per_gpu"),
        ([H200, OTHER], "kernel", "gpu.one_rank_per_gpu"),
        ([H200] * 2, "stream", "gpu.shared_without_mps"),
        ([under_mps(H200)] * 8, "kernel", "gpu.shared_under_mps"),
        ([under_mps(H200), H200, under_mps(H200)], "stream", "gpu.shared_without_mps"),
        ([under_mps(H200), under_mps(H200, "/tmp/other")], "stream", "gpu.different_mps"),
        ([H200, under_mps(OTHER), under_mps(OTHER)], "kernel", "gpu.shared_under_mps"),
        ([under_mps(H200), under_mps(OTHER, "/tmp/other")], "kernel", "gpu.one_rank_per_gpu"),
    ],
)
def test_kernels_wait_for_each_other_only_where_they_run_at_the_same_time(ranks, mode, reason):
    found = agree(ranks)
    assert (found.mode, found.reason.id) == (mode, reason)
    assert found.board == 4096


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8, 13, 16, 17, 64])
def test_the_blocks_of_all_ranks_and_of_two_communicators_fit_on_the_gpu(size):
    found = agree([under_mps(H200)] * size)
    assert found.blocks >= 1
    assert 2 * size * found.blocks <= 2 * H200.multiprocessors
    assert (size + 1) * 2 * (found.blocks + 1) > 2 * H200.multiprocessors, "no more than necessary is given away"
    assert found.most == (16 if size <= 16 else 64)


def test_the_smallest_gpu_and_the_most_crowded_one_limit_the_blocks():
    small = replace(OTHER, multiprocessors=10)
    assert agree([H200, small]).blocks == 10
    assert agree([H200, *[under_mps(OTHER)] * 3]).blocks == 132 * 2 // 6
    assert agree([replace(H200, multiprocessors=1), *[under_mps(OTHER)] * 63]).blocks == 1


def test_ranks_that_take_turns_may_fill_the_gpu():
    assert agree([H200] * 8).blocks == 2 * H200.multiprocessors


def test_facts_survive_the_journey_between_ranks():
    facts = replace(under_mps(H200), unreachable=("b1", "c2"), problem="über 3 GPUs")
    assert GpuFacts.unpacked(facts.packed()) == facts


def test_a_rank_without_a_gpu_is_named_on_all_ranks():
    with pytest.raises(UsageError) as caught:
        agree([H200, GpuFacts(problem="there is no driver")])
    assert caught.value.id == "gpu.problem_on_rank"
    assert str(caught.value) == "rank 1 cannot use its GPU for this communicator: there is no driver"
    assert translated(caught.value.message, "zh").startswith("rank 1 无法")


def test_gpus_without_peer_access_are_named():
    with pytest.raises(UsageError) as caught:
        agree([H200, replace(OTHER, unreachable=("a0",))])
    assert caught.value.id == "gpu.no_peer_access"
    assert caught.value.parameters["rank"] == 1
    assert caught.value.parameters["other"] == 0
