from __future__ import annotations

import dataclasses
import pickle

import pytest

from builders import xor_exchange
from unisono import algorithm, find, one, one_per_rank, recv_reduce, send
from unisono.collectives import all_gather, all_reduce, broadcast
from unisono.errors import UsageError


def power_of_two(size):
    return size & (size - 1) == 0


@algorithm(all_reduce, chunks=one, serves=power_of_two)
def xor_butterfly(rank, size):
    """Exchange sums with the partner that differs in one bit."""
    yield from xor_exchange(rank, size)


def test_the_name_is_that_of_the_function_without_the_collective():
    @algorithm(all_gather, chunks=one_per_rank)
    def zigzag_all_gather(rank, size):
        yield ()

    assert zigzag_all_gather.name == "zigzag"
    assert str(zigzag_all_gather) == "all_gather/zigzag"
    assert xor_butterfly.name == "xor_butterfly"


def test_a_declared_algorithm_can_be_used_in_other_programs():
    assert list(xor_butterfly(1, 2)) == [(send(0, dst=0), recv_reduce(0, src=0))]


def test_the_error_for_an_unserved_size_lists_algorithms_that_serve_it():
    assert xor_butterfly.schedule(8).size == 8
    with pytest.raises(UsageError, match=r"declared for: 1, 2, 4, 8, 16\. .*6 ranks: .*ring.*rabenseifner"):
        xor_butterfly.schedule(6)


def test_chunks_and_scratch_may_depend_on_the_size_and_on_options():
    @algorithm(all_reduce, chunks=lambda size, pieces: size * pieces, scratch=lambda size: size + 1)
    def sliced(rank, size, pieces=3):
        yield ()

    schedule = sliced.schedule(4, pieces=2)
    assert (schedule.chunks, schedule.slots) == (8, 13)
    assert sliced.schedule(4).chunks == 12
    assert schedule.label == "all_reduce/sliced(pieces=2)"


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ({"size": 0}, "expected a whole number of ranks"),
        ({"size": 2.0}, "expected a whole number of ranks"),
        ({"size": 4, "root": 1}, "all_reduce has no root"),
        ({"size": 4, "root": 1.0}, "root=1.0; expected the number of a rank"),
        ({"size": 4, "root": "1"}, "root='1'; expected the number of a rank"),
        ({"size": 4, "nodes": 2}, "there is no option 'nodes'; the options are: none"),
    ],
)
def test_invalid_arguments_of_schedule_are_rejected(call, complaint):
    with pytest.raises(UsageError, match=complaint):
        xor_butterfly.schedule(**call)


def test_a_root_that_is_not_a_rank_is_rejected():
    @algorithm(broadcast)
    def mine(rank, size, root=0):
        yield ()

    with pytest.raises(UsageError, match="root=4 with 4 ranks; expected a rank from 0 to 3"):
        mine.schedule(4, root=4)


def test_invalid_declarations_are_rejected():
    with pytest.raises(
        UsageError, match=r"test_declaration.py, line \d+: .*expected it to begin with \(rank, size, root=0\)"
    ):

        @algorithm(broadcast)
        def rootless(rank, size):
            yield ()

    with pytest.raises(UsageError, match="node of greedy has no default"):

        @algorithm(all_reduce)
        def greedy(rank, size, node):
            yield ()

    with pytest.raises(UsageError, match="needs a collective as its first argument"):

        @algorithm
        def bare(rank, size):
            yield ()

    @algorithm(all_gather, chunks=3)
    def uneven(rank, size):
        yield ()

    with pytest.raises(UsageError, match="3 chunks for 4 ranks; expected a multiple of 4"):
        uneven.schedule(4)

    @algorithm(all_reduce, chunks=lambda size: 1 // (size - 4))
    def fragile(rank, size):
        yield ()

    with pytest.raises(UsageError, match=r"chunks= raised ZeroDivisionError: .* for 4 ranks"):
        fragile.schedule(4)


def test_an_exception_in_serves_is_reported():
    @algorithm(all_reduce, serves=lambda size: 1 // (size - 4) > 0)
    def fragile(rank, size):
        yield ()

    with pytest.raises(UsageError, match=r"serves= raised ZeroDivisionError: .* for 4 ranks"):
        fragile.schedule(4)


def test_a_copied_collective_is_rejected():
    with pytest.raises(UsageError, match="needs a collective"):
        algorithm(dataclasses.replace(all_reduce, name="mine"))


def test_an_algorithm_and_its_schedule_can_be_sent_to_another_process():
    for name in ("ring", "broadcast/tree", "hierarchical"):
        schedule = pickle.loads(pickle.dumps(find(name).schedule(5)))
        assert pickle.loads(pickle.dumps(find(name))) is find(name)
        assert list(schedule.program(3)) == list(find(name).schedule(5).program(3))
    assert pickle.loads(pickle.dumps(xor_butterfly)) is xor_butterfly


@pytest.mark.parametrize("chunks", ["4", 2.0, int, max, -1, None])
def test_invalid_numbers_of_chunks_are_rejected(chunks):
    @algorithm(all_reduce, chunks=chunks)
    def mine(rank, size):
        yield ()

    with pytest.raises(UsageError, match=r"chunks= (gave|raised)|chunks for"):
        mine.schedule(3)
