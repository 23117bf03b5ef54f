from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest

from builders import NAMES, written
from unisono import find, play, prove
from unisono.algorithms import algorithm, one
from unisono.collectives import all_reduce
from unisono.drawing.packing import pack
from unisono.drawing.scene import example_inputs, scene_of
from unisono.errors import UsageError
from unisono.schedule import recv, recv_reduce, send
from wrong.zigzag_twice import zigzag_twice


def unpacked(packed):
    """Return the columns of a scene, as the page reads them."""
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), "<i4").astype(np.int64)
    columns, start = {}, 0
    for name, length in zip(packed["names"], packed["lengths"], strict=True):
        columns[name] = np.cumsum(numbers[start : start + length]).tolist()
        start += length
    return columns


def drawn(name, size, root=None, **options):
    chosen = find(name)
    return scene_of(chosen.schedule(size, root, **options), chosen)


def phases_of(scene):
    return [(phase["words"]["en"], phase["first"], phase["last"]) for phase in scene["phases"]]


def test_columns_are_packed_without_loss():
    columns = {"a": [5, 5, -1, 2**30], "b": [], "c": np.array([7], np.int32)}
    assert unpacked(pack(columns)) == {"a": [5, 5, -1, 2**30], "b": [], "c": [7]}


@pytest.mark.parametrize("name", NAMES)
def test_a_scene_is_plain_data_and_small(name):
    for size in (1, 5):
        scene = drawn(name, size)
        assert len(json.dumps(scene)) < 12_000
        assert scene["on_stage"]
        assert scene["failure"] is None
        assert scene["facts"]["messages"] == len(unpacked(scene["packed"])["message_src"])
        assert scene["algorithm"]["idea"]["zh"] != scene["algorithm"]["idea"]["en"]


@pytest.mark.parametrize(
    ("name", "phases"),
    [
        ("ring", [("reduce-scatter", 1, 4), ("all-gather", 5, 8)]),
        ("tree", [("reduce", 1, 3), ("broadcast", 4, 6)]),
        ("broadcast/scatter_all_gather", [("scatter", 1, 3), ("all-gather", 4, 7)]),
        ("hierarchical", [("reduce-scatter", 1, 3), ("all-reduce", 4, 11), ("all-gather", 12, 14)]),
        ("torus", [("reduce-scatter", 1, 4), ("all-gather", 5, 8)]),
        ("reduce/tree", [("summing", 1, 3)]),
        ("barrier/dissemination", [("announcing arrivals", 1, 3)]),
        ("naive", [("forwarding", 1, 1), ("local work", 2, 6)]),
    ],
)
def test_phases_follow_from_the_composition_of_a_program(name, phases):
    assert phases_of(drawn(name, 5)) == phases


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("ring", "ring"), ("broadcast/chain", "line"), ("tree", "tree"), ("gather/naive", "tree"), ("torus", "grid"),
        ("hierarchical", "nodes"), ("all_to_all/hierarchical", "nodes"), ("recursive_doubling", "ring"),
        ("neighbour_exchange_all_gather", "ring"), ("barrier/tree", "tree"),
    ],
)  # fmt: skip
def test_the_layout_matches_the_communication_pattern(name, layout):
    assert drawn(name, 6)["layout"]["best"] == layout


def test_a_line_starts_at_the_root():
    assert drawn("broadcast/chain", 5, root=2)["layout"]["line"] == [2, 3, 4, 0, 1]


def test_a_tree_has_the_root_on_top():
    parents = drawn("broadcast/tree", 5, root=3)["layout"]["parents"]
    assert parents[3] == -1
    assert parents.count(-1) == 1


def test_nodes_are_those_of_the_option():
    assert drawn("hierarchical", 7, node=(3, 4))["layout"]["nodes"] == [[0, 1, 2], [3, 4, 5, 6]]
    assert drawn("hierarchical", 4, node=((0, 2), (1, 3)))["layout"]["nodes"] == [[0, 2], [1, 3]]
    assert drawn("ring", 6)["layout"]["nodes"] == [[0, 1, 2, 3], [4, 5]]


def test_slots_have_the_parts_that_the_collective_gives_them():
    assert [part["name"] for part in drawn("ring", 4)["parts"]] == ["data"]
    assert [part["name"] for part in drawn("naive", 4)["parts"]] == ["data", "scratch"]
    assert [part["name"] for part in drawn("all_to_all/hierarchical", 4)["parts"]] == ["input", "output", "scratch"]


def test_every_step_has_its_source_line():
    scene = drawn("ring", 4)
    columns = unpacked(scene["packed"])
    sources = scene["code"]["sources"]
    assert [source["name"] for source in sources] == ["ring", "ring_reduce_scatter", "ring_all_gather"]
    stacks = [scene["code"]["stacks"][number] for number in columns["step_stack"]]
    lines = {sources[stack[-1][0]]["text"].splitlines()[stack[-1][1]].strip() for stack in stacks}
    assert lines == {
        "yield send((rank - hop) % size, dst=right), recv_reduce((rank - hop - 1) % size, src=left)",
        "yield send((rank - hop) % size, dst=right), recv((rank - hop - 1) % size, src=left)",
    }


def test_the_facts_are_those_of_the_verifier():
    facts, proof = drawn("rabenseifner", 6)["facts"], prove(find("rabenseifner").schedule(6))
    assert facts["bytes"] == {"text": str(proof.busiest), "value": float(proof.busiest)}
    assert facts["bandwidth_ratio"] == proof.bandwidth_ratio
    assert facts["tree"] == proof.tree


def test_example_numbers_are_easy_to_add():
    assert example_inputs(find("ring").schedule(4)) == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]]
    assert example_inputs(find("all_gather/ring").schedule(3)) == [[0], [11], [22]]
    assert example_inputs(find("broadcast/naive").schedule(3, root=2)) == [None, None, [20]]
    assert example_inputs(find("all_to_all/naive").schedule(12))[3][11] == 311
    play(find("all_to_all/naive").schedule(12), example_inputs(find("all_to_all/naive").schedule(12)))


def test_a_schedule_that_fails_its_proof_is_drawn_up_to_the_failing_step():
    scene = scene_of(zigzag_twice.schedule(4), zigzag_twice)
    assert scene["facts"] is None
    assert scene["failure"]["error"] == "GoalError"
    assert (scene["failure"]["rank"], scene["failure"]["step"]) == (2, 2)
    assert scene["levels"] == scene["failure"]["level"] == 4
    columns = unpacked(scene["packed"])
    assert max(columns["message_got"]) == 4
    assert len(columns["message_got"]) == 4


def test_a_deadlock_before_the_first_message_has_one_empty_step():
    @algorithm(all_reduce, chunks=one)
    def waits(rank, size):
        yield recv(0, src=(rank - 1) % size)
        yield send(0, dst=(rank + 1) % size)

    scene = scene_of(waits.schedule(3), waits)
    assert scene["failure"]["error"] == "DeadlockError"
    assert scene["levels"] == 1
    assert unpacked(scene["packed"])["message_src"] == []


def test_a_program_that_raises_is_drawn_up_to_the_exception():
    @algorithm(all_reduce, chunks=one)
    def raises_early(rank, size):
        yield send(0, dst=(rank + 1) % size), recv_reduce(0, src=(rank - 1) % size)
        yield send(0, dst=(rank + 1) // 0), recv_reduce(0, src=0)

    scene = scene_of(raises_early.schedule(3), raises_early)
    assert "ZeroDivisionError" in scene["failure"]["what"]
    assert scene["failure"]["step"] == 1
    assert scene["levels"] == 2
    assert unpacked(scene["packed"])["message_got"] == [1, 1, 1]


def test_a_schedule_in_text_form_shows_its_steps():
    schedule = written("all_reduce", 1, "send 0 to 1; recv_reduce 0 from 1", "send 0 to 0; recv_reduce 0 from 0")
    scene = scene_of(schedule)
    assert scene["code"]["text"][1] == ["rank 1", "  1: send 0 to 0; recv_reduce 0 from 0"]
    assert scene["code"]["sources"] == []


def test_above_64_ranks_there_is_no_stage_and_the_data_is_small():
    scene = drawn("ring", 65)
    assert not scene["on_stage"]
    assert len(scene["packed"]["data"]) < 10_000
    assert phases_of(scene) == [("reduce-scatter", 1, 64), ("all-gather", 65, 128)]
    assert drawn("ring", 64)["on_stage"]


def test_too_many_ranks_are_rejected():
    with pytest.raises(UsageError, match="at most 1024"):
        drawn("tree", 1025)


def test_too_many_chunks_have_no_stage():
    assert not drawn("broadcast/chain", 3, pieces=8000)["on_stage"]


@pytest.mark.parametrize(
    ("name", "shared", "on_root"),
    [
        ("all_reduce/ring", True, False),
        ("broadcast/tree", True, False),
        ("reduce_scatter/ring", False, False),
        ("reduce/tree", False, True),
        ("gather/tree", False, True),
        ("scatter/tree", False, False),
        ("barrier/tree", False, False),
    ],
)
def test_a_scene_says_which_ranks_end_with_the_result(name, shared, on_root):
    about = scene_of(find(name).schedule(3))["collective"]
    assert (about["shares_result"], about["result_on_root"]) == (shared, on_root)
