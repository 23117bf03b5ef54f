from __future__ import annotations

import pytest

from unisono import backwards, combine, copy, mapped, recv, recv_reduce, send
from unisono.algorithms.ring import ring_all_gather
from unisono.errors import ScheduleError


def test_mapped_renames_ranks_and_chunks():
    program = [(send(0, dst=1), recv(1, src=1)), copy(1, to=0)]
    assert list(mapped(program, ranks=(7, 9), chunks=(4, range(10, 12)))) == [
        (send(4, dst=9), recv(range(10, 12), src=9)),
        (copy(range(10, 12), to=4),),
    ]


def test_mapped_joins_the_chunks_of_one_message():
    [(op,)] = mapped([send((0, 2), dst=0)], chunks=((0, 1), 5, (8, 9)))
    assert op == send((0, 1, 8, 9), dst=0)


def test_mapped_omits_ops_whose_chunks_are_mapped_to_none():
    program = [(send(0, dst=1), recv(1, src=1)), send((0, 1), dst=1), copy(1, to=1)]
    assert list(mapped(program, chunks=(4, ()))) == [(send(4, dst=1),), (send(4, dst=1),), ()]


def test_mapped_without_a_mapping_changes_nothing():
    program = [(send(3, dst=1),), (combine(3, into=4),)]
    assert list(mapped(program)) == program


@pytest.mark.parametrize(
    "step", [send(2, dst=0), send(0, dst=2), send(-1, dst=0), send(0, dst=-1), copy(0, to=2), send((0, 5), dst=0)]
)
def test_mapped_rejects_numbers_outside_its_mapping(step):
    with pytest.raises(ScheduleError, match="does not list"):
        list(mapped([step], ranks=(0, 1), chunks=(0, 1)))


def test_backwards_turns_an_all_gather_into_a_reduce_scatter():
    assert list(backwards([(send(0, dst=1), recv(3, src=2)), send(3, dst=1)])) == [
        (recv_reduce(3, src=1),),
        (recv_reduce(0, src=1), send(3, dst=2)),
    ]


def test_backwards_twice_gives_the_original_program():
    forth = [step if isinstance(step, tuple) else (step,) for step in ring_all_gather(2, 5)]
    assert list(backwards(backwards(forth, add=False), add=False)) == forth


@pytest.mark.parametrize("op", [recv_reduce(0, src=1), copy(0, to=1), combine(0, into=1)])
def test_ops_that_overwrite_cannot_run_backwards(op):
    with pytest.raises(ScheduleError, match="backwards"):
        list(backwards([op]))


@pytest.mark.parametrize("combinator", [mapped, backwards])
def test_invalid_steps_of_an_inner_program_are_named(combinator):
    with pytest.raises(ScheduleError, match="not a step"):
        list(combinator(["hello"]))


def test_mapping_a_message_without_chunks_keeps_it():
    assert list(mapped([send([], dst=0)], chunks=[0])) == [(send((), dst=0),)]
