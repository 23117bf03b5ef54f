from __future__ import annotations

import dataclasses
import linecache
import sys

import pytest

from builders import NAMES
from unisono import backwards, find, mapped, recv, recv_reduce, send
from unisono.drawing.source_lines import LineFinder
from unisono.schedule.network import run


class Nothing:
    """A memory that holds nothing."""

    def read(self, rank, chunks):
        return None

    def write(self, rank, op, sent, payload):
        return None


def followed(schedule):
    """Play a schedule and return the stacks of each rank."""
    finder = LineFinder()
    run(dataclasses.replace(schedule, make=lambda rank: finder.run(rank, schedule.make(rank))), Nothing())
    return finder.stacks


def names(stack):
    return [(code.co_name, reverse) for code, _, reverse in stack]


@pytest.mark.parametrize("name", NAMES)
def test_every_step_of_every_algorithm_has_a_line_that_yields_it(name):
    algorithm = find(name)
    for size in (3, 5, 8):
        schedule = algorithm.schedule(size)
        stacks = followed(schedule)
        for rank in range(size):
            assert len(stacks[rank]) == len(list(schedule.program(rank)))
            for stack in stacks[rank]:
                assert stack[0][0] is algorithm.function.__code__
                code, line, _ = stack[-1]
                assert "yield" in linecache.getline(code.co_filename, line)


def test_the_stack_includes_programs_that_run_others():
    first, *_, last = followed(find("ring").schedule(5))[2]
    assert names(first) == [("ring", False), ("ring_reduce_scatter", False)]
    assert names(last) == [("ring", False), ("ring_all_gather", False)]
    assert names(followed(find("hierarchical").schedule(8))[0][0]) == [
        ("hierarchical", False), ("inside", False), ("ring_reduce_scatter", False),
    ]  # fmt: skip


def test_a_program_run_backwards_is_marked_and_has_the_line_of_each_step():
    def forwards(rank):
        if rank == 0:
            yield send(0, dst=1)  # the first step
            yield send(1, dst=1)  # the second step
        else:
            yield recv(0, src=0)
            yield recv(1, src=0)

    def program(rank):
        yield from backwards(forwards(rank))

    schedule = dataclasses.replace(find("ring").schedule(2), make=program)
    stacks = followed(schedule)[0]
    assert [names(stack) for stack in stacks] == [[("program", False), ("forwards", True)]] * 2
    first_line = forwards.__code__.co_firstlineno
    assert [stack[-1][1] - first_line for stack in stacks] == [3, 2]  # from the last step to the first


def test_mapped_programs_are_followed():
    def inner(me):
        yield send(0, dst=1 - me), recv_reduce(0, src=1 - me)

    def program(rank):
        yield from mapped(inner(rank), ranks=[0, 1])

    stacks = followed(dataclasses.replace(find("recursive_doubling").schedule(2), make=program))
    assert names(stacks[0][0]) == [("program", False), ("inner", False)]


def test_steps_without_ops_are_omitted_as_in_programs():
    schedule = find("broadcast/chain").schedule(3)  # the last step of the last rank is empty
    assert len(followed(schedule)[2]) == len(list(schedule.program(2)))


def test_steps_not_from_a_generator_have_no_lines():
    steps = [[(send(0, dst=1), recv_reduce(0, src=1))], [(send(0, dst=0), recv_reduce(0, src=0))]]
    stacks = followed(dataclasses.replace(find("recursive_doubling").schedule(2), make=steps.__getitem__))
    assert stacks == {0: [()], 1: [()]}


def test_a_profiler_of_the_caller_stays_installed():
    def profiler(frame, event, arg):
        return None

    sys.setprofile(profiler)
    try:
        followed(find("ring").schedule(3))
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
