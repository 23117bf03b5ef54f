"""For every mistake in a user's generator, the error names rank and step and gives a hint."""

from __future__ import annotations

import numpy as np
import pytest

from unisono import algorithm, copy, mapped, one_per_rank, recv, recv_reduce, send
from unisono.collectives import all_reduce
from unisono.errors import HazardError, ScheduleError
from unisono.schedule import Op


def program_of(*steps, size=3, rank=0, **declared):
    """Return the checked steps of a program that yields ``steps`` on every rank."""

    @algorithm(all_reduce, chunks=one_per_rank, **declared)
    def mine(rank, size):
        yield from steps

    return list(mine.schedule(size).program(rank))


def test_checked_steps_have_their_sends_first_and_otherwise_the_written_order():
    [step] = program_of((recv(2, src=1), send(0, dst=1), copy(1, to=0), send(1, dst=2)))
    assert [str(op) for op in step] == ["send 0 to 1", "send 1 to 2", "recv 2 from 1", "copy 1 to 0"]


def test_equal_chunks_have_the_same_form():
    steps = program_of(send([0, 1, 2], dst=1), send((0, 2), dst=1), send(range(0, 3, 2), dst=1), send([1], dst=1))
    assert [op.chunks for (op,) in steps] == [range(3), (0, 2), (0, 2), 1]


def test_numpy_integers_are_integers():
    [(op,)] = program_of(send(np.int64(2), dst=np.int32(1)))
    assert (type(op.chunks), type(op.other)) == (int, int)


def test_an_empty_step_is_omitted():
    assert program_of((), send(0, dst=1), []) == [(send(0, dst=1),)]


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ("hello", "not a step"),
        (None, "not a step"),
        ((send(0, dst=1), 7), "not an op"),
        ((op for op in [send(0, dst=1)]), "not a step"),
        (send(0, dst=3), "there is no rank 3"),
        (send(0, dst=-1), "there is no rank -1"),
        (send(0, dst=0), "itself"),
        (send(3, dst=1), "there is no chunk 3"),
        (send(-1, dst=1), "there is no chunk -1"),
        (send(range(2, 5), dst=1), "there is no chunk 4"),
        (send(0.5, dst=1), "0.5 is not a chunk"),
        (send(0, dst=0.5), "0.5 is not a rank"),
        (send(True, dst=1), "True is not a chunk"),
        (send("0", dst=1), "'0' is not a chunk"),
        (send((0, 1.5), dst=1), "1.5 is not a chunk"),
        (send([], dst=1), "names no chunk"),
        (copy((0, 1), to=2), "different numbers of chunks"),
    ],
)
def test_invalid_steps_are_rejected_with_rank_and_step(step, complaint):
    with pytest.raises(ScheduleError, match=complaint) as caught:
        program_of(send(0, dst=1), step)
    error = caught.value
    assert (error.algorithm, error.size, error.rank, error.step) == ("all_reduce/mine", 3, 0, 1)
    assert "Traceback" not in str(error)


def test_naming_a_chunk_twice_in_one_message_is_a_hazard():
    with pytest.raises(HazardError, match="twice"):
        program_of(recv((0, 1, 0), src=1))


def test_a_program_that_never_ends_is_stopped():
    @algorithm(all_reduce)
    def endless(rank, size):
        while True:
            yield send(0, dst=(rank + 1) % size)

    with pytest.raises(ScheduleError, match=r"has not ended after \d+ steps") as caught:
        list(endless.schedule(4).program(0))
    assert "step_limit" in caught.value.hint


def test_a_long_program_can_declare_its_length():
    steps = [recv_reduce(0, src=1)] * 5000
    with pytest.raises(ScheduleError, match="has not ended"):
        program_of(*steps)
    assert len(program_of(*steps, step_limit=5000)) == 5000
    with pytest.raises(ScheduleError, match="has not ended after 4999 steps"):
        program_of(*steps, step_limit=4999)


def test_an_op_that_does_not_exist_is_named():
    with pytest.raises(ScheduleError, match="there is no op 'push'"):
        program_of(Op("push", 0, 1))


def test_an_exception_in_the_program_is_reported_with_its_line():
    @algorithm(all_reduce)
    def clumsy(rank, size):
        yield send(0, dst=1)
        yield send([10, 20][rank + 2], dst=1)

    with pytest.raises(ScheduleError, match="raised IndexError") as caught:
        list(clumsy.schedule(3).program(0))
    assert "test_checking.py" in caught.value.found
    assert "[10, 20][rank + 2]" in caught.value.found
    assert (caught.value.rank, caught.value.step) == (0, 1)
    assert isinstance(caught.value.__cause__, IndexError)


def test_a_function_that_does_not_yield_is_reported():
    @algorithm(all_reduce)
    def plain(rank, size):
        return 5

    with pytest.raises(ScheduleError, match="returned int") as caught:
        list(plain.schedule(3).program(0))
    assert "yield" in caught.value.hint


@pytest.mark.parametrize(
    ("step", "cure"),
    [
        (lambda: send(0, 1), "write send(chunk, dst=rank)"),
        (lambda: send(0, src=1), "write send(chunk, dst=rank)"),
        (lambda: mapped(every_other, ranks=[0, 1]), "yield from program(...)"),
        (lambda: [*mapped(every_other, ranks=[0, 1])], "call the program: mapped(program(me, size), ...)"),
    ],
)
def test_typical_mistakes_get_the_right_hint(step, cure):
    @algorithm(all_reduce)
    def mine(rank, size):
        yield step()

    with pytest.raises(ScheduleError) as caught:
        list(mine.schedule(3).program(0))
    assert cure in caught.value.hint


@algorithm(all_reduce)
def every_other(rank, size):
    yield send(0, dst=1 - rank)


@pytest.mark.parametrize(
    "chunks",
    [range(0, 10**11, 2), range(10**20), 10**5000, -(10**5000), range(10**20, 10**20 + 5), (0, 10**30)],
    ids=["strided", "long", "digits", "negative", "far", "listed"],
)
def test_huge_numbers_are_rejected_at_once(chunks):
    with pytest.raises(ScheduleError, match=r"there is no chunk|is not a chunk") as caught:
        program_of(send(chunks, dst=1))
    assert len(str(caught.value)) < 20_000


class Mute(BaseException):
    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize("error", [Mute(), SystemExit(0), BaseException("out")], ids=["mute", "exit", "base"])
def test_any_exception_of_a_program_is_reported(error):
    @algorithm(all_reduce)
    def mine(rank, size):
        yield send(0, dst=1)
        raise error

    with pytest.raises(ScheduleError, match=f"the program raised {type(error).__name__}"):
        list(mine.schedule(3).program(0))


def test_an_interrupt_is_not_an_error_of_the_program():
    @algorithm(all_reduce)
    def mine(rank, size):
        yield send(0, dst=1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(mine.schedule(3).program(0))
