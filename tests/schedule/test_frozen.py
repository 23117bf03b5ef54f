"""A frozen schedule holds the steps that its programs yielded when they ran, once."""

from __future__ import annotations

import dataclasses

import pytest

from builders import NAMES
from unisono import Schedule, combine, copy, find, recv, recv_reduce, send
from unisono.errors import HazardError, InternalError, ScheduleError, UsageError
from unisono.schedule import FrozenSchedule, freeze
from unisono.schedule.frozen import BURST


def schedule_of(*programs, slots: int = 1, size: int | None = None) -> Schedule:
    return Schedule("all_reduce", "mine", size or len(programs), 1, slots, make=lambda rank: programs[rank])


def steps_of(schedule: Schedule) -> list[list[tuple]]:
    return [list(schedule.program(rank)) for rank in range(schedule.size)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 2, 5, 8, 13])
def test_freezing_changes_no_step(name, size):
    algorithm = find(name)
    if algorithm.can_serve(size):
        schedule = algorithm.schedule(size)
        frozen = freeze(schedule)
        assert steps_of(frozen) == steps_of(frozen) == steps_of(schedule)
        assert frozen.label == schedule.label
        sent = [[op for step in program for op in step if op.kind == "send"] for program in steps_of(schedule)]
        amounts = [[1 if type(op.chunks) is int else len(op.chunks) for op in of_rank] for of_rank in sent]
        assert frozen.sent_messages == sum(map(len, amounts))
        assert frozen.sent_chunks == tuple(map(sum, amounts))
        assert frozen.largest_message == max(max(of_rank, default=0) for of_rank in amounts)


def test_every_kind_of_chunk_and_long_programs_are_preserved():
    first = [send(70_000, dst=1), copy(range(2, 9), to=(9, 11, 13, 12, 15, 17, 16)), combine(1, into=2)] * BURST
    second = [(recv(range(3), src=0), recv_reduce((4, 3), src=0)), send([7, 5], dst=0)]
    schedule = schedule_of(first, second, slots=80_000)
    assert steps_of(freeze(schedule)) == steps_of(schedule)


def test_each_program_runs_once():
    runs = []

    def make(rank):
        runs.append(rank)
        yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)

    frozen = freeze(Schedule("all_reduce", "mine", 2, 1, 1, make=make))
    assert steps_of(freeze(frozen)) == steps_of(frozen)
    assert list(frozen.make(0)) == list(frozen.program(0))
    assert frozen.digest == freeze(frozen).digest
    assert runs == [0, 1]


def test_changes_after_a_yield_have_no_effect():
    ops, chunks, options = [send([0, 1], dst=1)], [0, 1], {"node": [1, 2]}

    def make(rank):
        if rank == 0:
            yield ops
            yield send(chunks, dst=1)
            ops[0] = send(0, dst=1)
            chunks[:] = [1, 0]

    schedule = Schedule("all_reduce", "mine", 2, 1, 2, make=make, options=options)
    frozen = freeze(schedule)
    options["node"].append(3)
    assert list(frozen.program(0)) == [(send(range(2), dst=1),), (send(range(2), dst=1),)]
    assert frozen.label == "all_reduce/mine(node=[1, 2])" != schedule.label


def test_the_digest_is_that_of_the_steps():
    def digest(*program, slots=80_000):
        return freeze(schedule_of(list(program), [], slots=slots)).digest

    different = [
        digest(), digest(send(0, dst=1)), digest(send(1, dst=1)), digest(recv(0, src=1)), digest(send(70_000, dst=1)),
        digest(send(0, dst=1), send(0, dst=1)), digest((send(0, dst=1), send(0, dst=1))), digest(send([0, 2], dst=1)),
        digest(send([2, 0], dst=1)), digest(send([0, 3], dst=1)), digest(copy(0, to=1)), digest(copy(1, to=0)),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    assert digest(send([0, 1], dst=1)) == digest((send(range(2), dst=1),))
    there, elsewhere = schedule_of([send(0, dst=1)], []), schedule_of([], [send(0, dst=0)])
    assert freeze(there).digest != freeze(elsewhere).digest


class Moody(list):
    """A sequence with different contents each time it is read."""

    def __iter__(self):
        self.reads = getattr(self, "reads", 0) + 1
        return iter([0, 1] if self.reads == 1 else [10**6, -1])


class Liar(int):
    """A number with arbitrary comparisons."""

    def __lt__(self, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__


class AnyKind(str):
    """A word that is equal to every other."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("recv")


def test_chunks_are_read_once():
    (step,) = freeze(schedule_of([send(Moody([0, 1]), dst=1)], [], slots=2)).program(0)
    assert step == (send(range(2), dst=1),)


def test_a_number_with_its_own_comparisons_becomes_a_plain_number():
    (step,) = freeze(schedule_of([send(Liar(0), dst=1)], [])).program(0)
    assert type(step[0].chunks) is int
    with pytest.raises(ScheduleError, match="there is no chunk 7"):
        freeze(schedule_of([send(Liar(7), dst=1)], []))


def test_a_kind_with_its_own_equality_is_rejected():
    kind = send(0, dst=1)._replace(kind=AnyKind("recv"))
    with pytest.raises(ScheduleError, match="there is no op"):
        freeze(schedule_of([kind], []))


def test_a_program_that_fails_is_not_frozen():
    with pytest.raises(HazardError):
        freeze(schedule_of([(recv(0, src=1), recv(0, src=1))], []))


def test_an_interrupted_program_leaves_nothing_behind():
    asked = []

    def make(rank):
        asked.append(rank)
        if len(asked) == 2:
            raise KeyboardInterrupt
        yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)

    schedule = Schedule("all_reduce", "mine", 2, 1, 1, make=make)
    with pytest.raises(KeyboardInterrupt):
        freeze(schedule)
    assert len(steps_of(freeze(schedule))) == 2


def test_only_the_steps_of_one_rank_can_be_kept():
    frozen = freeze(find("ring").schedule(5))
    alone = frozen.alone(3)
    assert isinstance(alone, FrozenSchedule)
    assert list(alone.program(3)) == list(frozen.program(3))
    assert (alone.label, alone.size, alone.slots) == (frozen.label, 5, 5)
    with pytest.raises(InternalError, match="rank 2 were not kept"):
        alone.program(2)
    with pytest.raises(InternalError, match="rank 2 were not kept"):
        alone.make(2)  # nothing that it refers to keeps them
    assert list(alone.make(3)) == list(frozen.program(3))
    with pytest.raises(UsageError, match="no rank 5"):
        alone.program(5)


def test_a_ring_of_64_ranks_takes_a_few_bytes_per_op():
    frozen = freeze(find("ring").schedule(64))
    nbytes = sum(
        len(part.data if hasattr(part, "data") else part) for program in frozen.packed for part in program[:4]
    )
    assert nbytes < 7 * 64 * 126 * 2


def test_a_replaced_program_is_not_mistaken_for_the_frozen_one():
    """``dataclasses.replace`` of a frozen schedule keeps the frozen steps."""
    frozen = freeze(schedule_of([send(0, dst=1)], []))
    assert list(dataclasses.replace(frozen, make=lambda rank: []).program(0)) == [(send(0, dst=1),)]
