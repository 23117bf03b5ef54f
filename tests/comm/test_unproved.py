"""Every program that runs was proved, and all ranks run programs of the same schedule."""

from __future__ import annotations

import numpy as np
import pytest

import unisono
from builders import line_steps
from unisono import algorithm, one, recv, recv_reduce, send
from unisono.collectives import all_reduce
from unisono.comm.plan_cache import MOST_PROGRAMS
from unisono.errors import MismatchError, UnisonoError


def summed(comm, mine, codec=None):
    x = np.full(2, comm.rank + 1.0, np.float32)
    comm.all_reduce(x, algorithm=mine, codec=codec, timeout=20)
    return x.tolist()


def kept_generators():
    kept = {}

    @algorithm(all_reduce, chunks=one)
    def line(rank, size):
        return kept.setdefault((rank, size), line_steps(rank, size))

    return line


def job_of_exhausted_generators(comm, codec):
    return summed(comm, kept_generators(), codec)


@pytest.mark.parametrize("codec", [None, "bf16"])
def test_kept_and_exhausted_generators_run_as_proved(codec):
    for _ in range(2):  # once with a new proof, and once with a cached one
        assert unisono.spawn(job_of_exhausted_generators, 3, codec, timeout=60) == [[6.0, 6.0]] * 3


def job_of_a_program_that_differs_between_ranks(comm):
    first = comm.rank

    @algorithm(all_reduce, chunks=one)
    def either(rank, size):
        """Each process sees a correct program, but not the same one."""
        if rank == first:
            yield recv_reduce(0, src=1 - first)
            yield send(0, dst=1 - first)
        else:
            yield send(0, dst=first)
            yield recv(0, src=first)

    try:
        summed(comm, either)
    except MismatchError as error:
        return str(error)
    except UnisonoError as error:
        return type(error).__name__
    return "nothing noticed"


def test_ranks_that_see_different_programs_get_a_mismatch_error():
    found = unisono.spawn(job_of_a_program_that_differs_between_ranks, 2, timeout=60)
    assert any("all_reduce" in text for text in found), found
    assert "nothing noticed" not in found


def job_of_many_schedules(comm):
    found = []
    for number in range(MOST_PROGRAMS + 10):
        # Each schedule is freed at once: its address is reused for the next one.
        steps = line_steps if number % 2 else lambda rank, size: iter(list(line_steps(rank, size)))
        schedule = unisono.Schedule(
            "all_reduce", f"line{number}", comm.size, 1, 1, make=lambda rank, made=steps: made(rank, comm.size)
        )
        found.append(summed(comm, schedule))
        del schedule
    return found == [[3.0, 3.0]] * len(found), len(comm.dispatcher.cache.programs)


def test_a_schedule_is_not_mistaken_for_an_earlier_one_at_the_same_address():
    for right, kept in unisono.spawn(job_of_many_schedules, 2, timeout=120):
        assert right
        assert kept <= MOST_PROGRAMS


def job_of_a_schedule_of_many_ranks(comm):
    comm.all_reduce(np.ones(comm.size, np.float32), algorithm="ring")
    (made,) = [made for made in comm.dispatcher.cache.programs.values() if made.name == "ring"]
    return sum(program is not None for program in made.schedule.packed)


def test_with_few_ranks_all_steps_are_kept_for_traces():
    assert unisono.spawn(job_of_a_schedule_of_many_ranks, 2, timeout=60) == [2, 2]


def test_with_many_ranks_only_the_steps_of_this_rank_are_kept():
    from unisono.comm.programs import MOST_RANKS_KEPT, compiled

    size = MOST_RANKS_KEPT + 1
    made = compiled(unisono.find("ring").schedule(size), 3)
    assert [rank for rank, program in enumerate(made.schedule.packed) if program is not None] == [3]
    assert len(list(made.schedule.program(3))) == made.proof.steps == 2 * size - 2
