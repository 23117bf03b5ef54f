"""The compiler translates programs into few instructions that store little."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import NAMES, there_and_back
from golden import lowered_text
from instruction_waiting import completes
from unisono import algorithm, find, recv, send
from unisono.collectives import broadcast
from unisono.compiler import Lowered, lower
from unisono.compiler.instructions import COPY, INPUT, REDUCE, SEND
from unisono.compiler.lengths import contents_of
from unisono.compiler.lower import Limits, lower_steps
from unisono.compiler.routes import Routes
from unisono.errors import InternalError
from unisono.schedule import Schedule, copy, recv_reduce
from unisono.verifier import proved
from unisono.verifier.rounding import proved_with_codec

GOLDEN = Path(__file__).parent.parent / "golden" / "lowered"


def lowered(schedule, rank: int, rounds: bool = False) -> Lowered:
    found = proved(schedule)
    return lower(proved_with_codec(found) if rounds else found, rank)


@pytest.mark.parametrize("name", NAMES)
def test_the_instructions_for_five_ranks_have_not_changed(name):
    assert lowered_text(find(name).schedule(5)) == (GOLDEN / f"{name.replace('/', '-')}.txt").read_text()


def test_every_golden_file_belongs_to_an_algorithm():
    assert {path.stem for path in GOLDEN.glob("*")} == {name.replace("/", "-") for name in NAMES}


def test_a_ring_sends_once_and_then_forwards():
    """Seven hops of four ranks: the first message is sent, the last one is kept, all others are forwarded."""
    text = lowered(find("ring").schedule(4), 1).text
    assert text == (
        "  0 send     to 2: output 0\n"
        "  0 reduce   from 0 to 2: output 3\n"
        "  1 reduce   from 0 to 2: output 2\n"
        "  2 reduce   from 0 to 2: output 1 -> output 1\n"
        "  3 receive  from 0 to 2: -> output 0\n"
        "  4 receive  from 0 to 2: -> output 3\n"
        "  5 receive  from 0: -> output 2\n"
    )


def test_with_a_codec_a_ring_stores_no_more_than_without():
    """The first chunk sent is overwritten later, and forwarded chunks are kept rounded or not at all."""
    assert lowered(find("ring").schedule(4), 1, rounds=True).text == lowered(find("ring").schedule(4), 1).text


def test_with_a_codec_a_sender_stores_the_rounded_chunk_if_it_needs_it():
    text = lowered(find("recursive_doubling").schedule(2), 0, rounds=True).text
    assert text == (
        "  0 send     to 1: output 0 -> output 0\n"  # rounded
        "  0 reduce   from 1: output 0 -> output 0\n"
    )


def test_with_a_codec_the_owner_of_a_part_uses_the_rounded_part_and_keeps_its_input():
    made = lowered(find("all_gather/ring").schedule(3), 1, rounds=True)
    assert made.text == (
        "  0 send     to 2: input 1 -> output 1\n"
        "  0 receive  from 0 to 2: -> output 0\n"
        "  1 receive  from 0: -> output 2\n"
    )


def test_inputs_that_are_not_results_are_never_written():
    for name in ("reduce_scatter/ring", "reduce_scatter/recursive_halving", "reduce/tree", "all_to_all/bruck"):
        for rank in range(5):
            made = lowered(find(name).schedule(5), rank, rounds=True)
            assert not any(op.out and op.out.buffer == INPUT for i in made.instructions for op in i.operands)


def test_only_chunks_that_were_neither_sent_nor_received_are_rounded_last():
    """Three ranks: the core is 0 and 1; rank 0 acts for rank 2 and sends it the result."""
    parts = [lowered(find("recursive_doubling").schedule(3), rank, rounds=True).rounded_last for rank in range(3)]
    assert [[str(part) for part in of_rank] for of_rank in parts] == [[], ["output 0"], []]


def test_forwarded_partial_sums_are_not_stored():
    for instruction in lowered(find("reduce_scatter/ring").schedule(5), 2).instructions[1:-1]:
        assert instruction.kind == REDUCE
        assert [operand.out for operand in instruction.operands] == [None]


def test_a_chunk_for_several_ranks_is_written_once():
    sends = [i for i in lowered(find("all_gather/naive").schedule(5), 2).instructions if i.kind == SEND]
    assert [send.to.to_all for send in sends] == [True]


def test_with_two_ranks_no_message_has_several_readers():
    sends = [i for i in lowered(find("all_gather/naive").schedule(2), 0).instructions if i.kind == SEND]
    assert [send.to.to_all for send in sends] == [False]


def test_messages_of_one_step_into_one_chunk_are_added_at_once():
    reduces = [i for i in lowered(find("reduce/naive").schedule(5), 0).instructions if i.kind == REDUCE]
    assert [len(i.sources) for i in reduces] == [4]


def test_a_sum_that_is_copied_last_is_not_copied_by_the_send_before_it():
    def program(rank):
        yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)
        yield copy(0, to=1)

    schedule = Schedule("all_reduce", "x", size=2, chunks=2, slots=2, make=program)
    made = lower_steps(Routes(schedule, ((0,), (1,))), 0, Limits(0, 0), None).instructions
    assert [each.kind for each in made] == [SEND, REDUCE, COPY]
    assert made[0].operands[0].out is None


def test_receivers_that_reply_are_not_silent():
    for rank in range(2):
        assert lowered(there_and_back.schedule(2), rank).silent_receivers == ()


@algorithm(broadcast)
def root_sends_to_all(rank, size, root=0):
    if rank == root:
        yield tuple(send(0, dst=peer) for peer in range(size) if peer != root)
    else:
        yield recv(0, src=root)


def test_receivers_of_a_broadcast_that_never_reply_are_silent():
    schedule = root_sends_to_all.schedule(4, root=2)
    assert lowered(schedule, 2).silent_receivers == (0, 1, 3)
    assert lowered(schedule, 0).silent_receivers == ()


@pytest.mark.parametrize("name", NAMES)
def test_one_instruction_is_sixteen_bytes(name):
    made = lowered(find(name).schedule(5), 0)
    assert len(made.packed()["instructions"]) == 16 * len(made.instructions)


@pytest.mark.parametrize("name", NAMES)
def test_fused_programs_do_not_deadlock_in_channels_of_depth_four(name):
    """A fused instruction holds its received message until it can forward it, which costs one message of depth."""
    for size in (2, 3, 5, 8, 13):
        if find(name).can_serve(size):
            schedule = find(name).schedule(size)
            assert completes([lowered(schedule, rank) for rank in range(size)], depth=4), size


def test_the_check_of_depth_can_fail():
    programs = [lowered(find("ring").schedule(3), rank) for rank in range(3)]
    assert not completes([programs[0], programs[0], programs[2]], depth=4)


def test_steps_that_are_not_proved_have_the_same_instructions_and_are_not_accepted_by_lower():
    """The simulator compiles steps without a proof; the engine gets only what ``lower`` returns."""
    for name in ("all_reduce/rabenseifner", "all_to_all/bruck", "gather/tree"):
        schedule = find(name).schedule(5)
        found = proved(schedule)
        for rank in range(5):
            contents = contents_of(schedule, find(name).collective, rank)
            unproved = lower_steps(Routes(schedule), rank, Limits(1, 1), contents)
            assert unproved.instructions == lower(found, rank).instructions
        with pytest.raises(InternalError):
            lower(schedule, 0)
