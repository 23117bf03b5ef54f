"""Every phase begins with one sentence that gives its idea, in English and Chinese."""

from __future__ import annotations

import re

import pytest

from unisono import algorithm, find, prove, recv, recv_reduce, send
from unisono.algorithms import BUILT_IN, one
from unisono.collectives import all_reduce
from unisono.drawing.phase_ideas.ideas import BUILT_IN as IDEAS
from unisono.drawing.scene import scene_of

SIZES = (1, 2, 3, 5, 6, 8)


def phases_of(found, size, **options):
    return scene_of(found.schedule(size, **options), found)["phases"]


@pytest.mark.parametrize("found", BUILT_IN, ids=str)
def test_every_phase_of_a_built_in_algorithm_has_its_own_idea(found):
    for size in SIZES:
        scene = scene_of(found.schedule(size), found)
        levels = [level for phase in scene["phases"] for level in range(phase["first"], phase["last"] + 1)]
        assert levels == list(range(1, scene["levels"] + 1))  # no level without a phase, no empty phase
        for phase in scene["phases"]:
            name, idea = phase["words"]["en"], phase["idea"]
            in_one_node = idea["en"].startswith(f"All {size} ranks are in one node")
            assert name in IDEAS[str(found)] or in_one_node, f"{found} on {size} ranks: {name}"
            assert re.fullmatch(r"[A-Z0-9].*\.", idea["en"])
            assert re.search(r"[\u4e00-\u9fff].*。$", idea["zh"])
            assert not re.search(r"[{}]|\b1 (steps|messages|chunks|nodes?|ranks)\b", idea["en"])
            assert "{" not in idea["zh"]


def test_there_is_no_idea_without_its_algorithm():
    assert set(IDEAS) == set(map(str, BUILT_IN))


@pytest.mark.parametrize("size", [3, 5, 8])
def test_an_idea_has_the_numbers_of_the_schedule(size):
    summing, sharing = phases_of(find("ring"), size)
    half = prove(find("ring").schedule(size)).steps // 2
    assert f"after {half} steps each rank owns one finished sum" in summing["idea"]["en"]
    assert f"after {half} steps every rank has all {size} sums" in sharing["idea"]["en"]
    assert f"{half} 步之后" in summing["idea"]["zh"]


def test_an_idea_names_the_root_and_the_nodes():
    (phase,) = phases_of(find("broadcast/hierarchical"), 6, root=2, node=2)
    assert "the leaders of the 3 nodes" in phase["idea"]["en"]
    (phase,) = phases_of(find("reduce/tree"), 5, root=3)
    assert "rank 3 holds the sum of all 5 ranks" in phase["idea"]["en"]


def test_ranks_beyond_a_power_of_two_are_mentioned_where_there_are_some():
    assert "power of two" in phases_of(find("recursive_doubling"), 5)[0]["idea"]["en"]
    assert "power of two" not in phases_of(find("recursive_doubling"), 8)[0]["idea"]["en"]


@algorithm(all_reduce, chunks=one)
def around(rank, size):
    """Hand the sum from rank to rank, then the result."""
    right, left = (rank + 1) % size, (rank - 1) % size
    if rank > 0:
        yield recv_reduce(0, src=left)
    yield send(0, dst=right)
    if rank == 0:
        yield recv(0, src=left)
        yield send(0, dst=right)
    elif rank < size - 1:
        yield recv(0, src=left)
        if rank < size - 2:
            yield send(0, dst=right)


@algorithm(all_reduce, chunks=one)
def composed(rank, size):
    """Run two built-in algorithms."""
    yield from find("reduce/tree")(rank, size, 0)
    yield from find("broadcast/tree")(rank, size, 0)


def test_the_idea_of_a_users_phase_is_derived_from_its_messages():
    summing, spreading = phases_of(around, 4)
    assert summing["idea"]["en"] == (
        "Sums grow: in 3 steps, 3 messages bring data that the receivers add to theirs. "
        "Every message goes to the right neighbour."
    )
    assert spreading["idea"]["zh"] == "分发数据：3 步内，3 条消息送来的数据由接收方存入。每条消息都发给右邻。"


def test_the_idea_of_a_users_phase_that_runs_another_algorithm_is_that_of_its_collective():
    ideas = [phase["idea"]["en"] for phase in phases_of(composed, 4)]
    assert ideas == [
        "The data of several ranks is added up on one of them.",
        "The data of one rank spreads to the others.",
    ]
