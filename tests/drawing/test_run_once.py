"""A drawing shows the steps that were proved: programs are run once for both."""

from __future__ import annotations

from unisono import algorithm, recv_reduce, send
from unisono.collectives import all_reduce
from unisono.drawing.scene import scene_of
from unisono.verifier import proved


def test_a_program_runs_once_for_its_proof_and_its_drawing():
    runs = []

    @algorithm(all_reduce)
    def swap(rank, size):
        runs.append(rank)
        yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)

    scene = scene_of(swap.schedule(2), swap)
    assert runs == [0, 1]
    assert scene["facts"]["messages"] == 2
    assert scene["code"]["stacks"]


def test_a_nondeterministic_program_is_drawn_as_proved():
    kept = {}

    @algorithm(all_reduce)
    def swap(rank, size):
        def steps():
            yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)

        yield from kept.setdefault(rank, steps())

    scene = scene_of(swap.schedule(2), swap)
    assert scene["failure"] is None
    assert scene["levels"] == 1


def test_a_proved_schedule_can_be_drawn():
    @algorithm(all_reduce)
    def swap(rank, size):
        yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)

    assert scene_of(proved(swap.schedule(2)).schedule)["levels"] == 1
