"""The words of device programs and stream operations, and the shapes of the programs of well-known algorithms."""

from __future__ import annotations

import time

import pytest

from builders import NAMES, SIZES
from unisono.algorithms import find
from unisono.codecs import Codec
from unisono.compiler import Lengths
from unisono.errors import UsageError
from unisono.gpu import program as words
from unisono.gpu.costs import fastest
from unisono.gpu.layout import SCRATCH_BYTES, TILE
from unisono.gpu.lowering import lower_for_device
from unisono.gpu.plans import device_plan
from unisono.gpu.program import INPUT, OUTPUT, SCRATCH, DeviceProgram, Move, Ref, Step, Sync, unpack
from unisono.gpu.stream_plan import LAUNCH, POST, SIGNAL, WAIT, stream_ops, unpack_stream_ops
from unisono.verifier import proved


def plan(name: str, size: int, elements: int, rank: int = 0, most_blocks: int = 16, op: str | None = "sum"):
    """Return the plan of a call on float32; ``elements`` are those of a block where there are blocks."""
    algorithm = find(name)
    collective = algorithm.collective
    root = 0 if collective.rooted else None
    blocks = (elements,) * (size if collective.blocked else 1)
    made = proved(algorithm.schedule(size, root))
    return device_plan(
        made, rank, size, collective, Lengths(blocks, blocks), 4, op if collective.reduces else None, None, root,
        most_blocks,
    )  # fmt: skip


def program(name: str, size: int = 8, elements: int = 1000, rank: int = 0, **options) -> DeviceProgram:
    return unpack(plan(name, size, elements, rank, **options).program, size)


def test_a_program_has_the_words_that_the_kernel_reads():
    near, far = Ref(0, INPUT, 8), Ref(2, SCRATCH, 2**33, encoded=True)
    move = Move((near,), (far, near), 2**32 + 5, flags=words.ROUND)
    made = DeviceProgram(3, 2, 2**34, (1, 2), (Step((Sync(2, 1),), (move,), (Sync(1, 1), Sync(2, 1))),))
    packed = [int.from_bytes(made.pack()[at : at + 4], "little") for at in range(0, len(made.pack()), 4)]
    step = [
        1, 1, 2, 25, 2 << 16 | 1,
        1 | 2 << 8 | 4 << 16, 0, 5, 1, 0, 0,
        0, 0, 8, 0, 2 | 2 << 16 | 1 << 24, 0, 0, 2, 0, 0, 8, 0,
        1 << 16 | 1, 2 << 16 | 1,
    ]  # fmt: skip
    assert packed == [39, 1, 2, 0, 0, 4, 6, 0, *step, 0, 0, 1, 0, 1, 1]
    assert unpack(made.pack(), 3) == made


@pytest.mark.parametrize("name", NAMES)
def test_every_program_can_be_unpacked(name):
    for size in SIZES:
        if find(name).can_serve(size):
            made = plan(name, size, 300)
            assert unpack(made.program, size).pack() == made.program


@pytest.mark.parametrize("op", ["sum", "avg"])
@pytest.mark.parametrize("size", [2, 3, 8, 13])
def test_direct_all_reduce_is_the_two_shot_kernel(size, op):
    """Entry, one move that adds from all and stores to all, one round of signals, no scratch memory."""
    made = plan("direct", size, 1000, op=op)
    assert made.scratch_bytes == 0
    first, last = unpack(made.program, size).steps
    (move,) = first.moves
    assert move.flags == words.REDUCE | (words.DIVIDE if op == "avg" else 0)
    assert sorted(ref.rank for ref in move.sources) == list(range(size))
    assert sorted(ref.rank for ref in move.destinations) == list(range(size))
    assert first.waits == last.signals == last.moves == ()
    assert first.signals == last.waits == tuple(Sync(rank, 1) for rank in range(1, size))


def test_naive_all_gather_puts_its_block_to_all_with_one_move():
    first, last = program("all_gather/naive").steps
    (move,) = first.moves
    assert move.sources == (Ref(0, INPUT, 0),)
    assert sorted(move.destinations) == [Ref(rank, OUTPUT, 0) for rank in range(8)]
    assert (len(first.signals), len(last.waits), last.moves) == (7, 7, ())


def test_naive_reduce_scatter_pulls_from_all():
    first, last = program("reduce_scatter/naive").steps
    (move,) = first.moves
    assert sorted(ref.rank for ref in move.sources) == list(range(8))
    assert {ref.buffer for ref in move.sources} == {INPUT}
    assert move.destinations == (Ref(0, OUTPUT, 0),)
    assert (len(first.signals), len(last.waits), last.moves) == (7, 7, ())


def test_ring_all_reduce_pulls_from_the_left_and_needs_no_scratch_memory():
    made = program("ring")
    moves = [move for step in made.steps for move in step.moves]
    assert len(moves) == 14
    assert {ref.rank for move in moves for ref in move.sources} == {0, 7}
    assert {(ref.rank, ref.buffer) for move in moves for ref in move.destinations} == {(0, OUTPUT)}
    assert made.contacts == (1, 7)
    assert made.passes == 1
    # One synchronization after each move, and one before the user may overwrite the array.
    assert [len(step.waits) for step in made.steps] == [0, *[1] * 14]


def test_long_broadcasts_are_pulled_so_that_all_ranks_work():
    elements = 2**22
    assert program("broadcast/naive", elements=elements, rank=0).steps[0].moves == ()
    (move,) = program("broadcast/naive", elements=elements, rank=5).steps[0].moves
    assert (move.sources, move.destinations) == ((Ref(0, OUTPUT, 0),), (Ref(5, OUTPUT, 0),))


def test_programs_with_scratch_memory_run_in_passes_of_equal_segments_on_all_ranks():
    elements = SCRATCH_BYTES // 4
    plans = [plan("reduce_scatter/ring", 5, elements, rank) for rank in range(5)]
    made = [unpack(each.program, 5) for each in plans]
    assert {each.passes for each in made} == {4}
    assert {each.segment_bytes for each in made} == {SCRATCH_BYTES // 4}
    assert max(each.scratch_bytes for each in plans) <= SCRATCH_BYTES


@pytest.mark.parametrize(("elements", "blocks"), [(0, 1), (TILE // 4, 1), (TILE // 4 + 1, 2), (10**6, 16)])
def test_there_are_no_more_blocks_than_tiles(elements, blocks):
    assert plan("broadcast/naive", 2, elements).blocks == blocks


def test_one_rank_alone_moves_only_its_own_part():
    assert program("direct", size=1).steps == ()
    ((move,),) = [step.moves for step in program("all_gather/naive", size=1).steps]
    assert (move.sources, move.destinations) == ((Ref(0, INPUT, 0),), (Ref(0, OUTPUT, 0),))


def test_stream_operations_are_the_entry_and_then_the_steps():
    made = plan("all_gather/naive", 3, 100)
    ops = [(op.kind, op.peer, op.number, op.step) for op in unpack_stream_ops(made.stream_ops)]
    assert ops == [
        (POST, 1, 0, 0), (POST, 2, 0, 0), (SIGNAL, 1, 1, 0), (SIGNAL, 2, 1, 0), (WAIT, 1, 1, 0), (WAIT, 2, 1, 0),
        (LAUNCH, 0, 0, 0), (SIGNAL, 1, 2, 0), (SIGNAL, 2, 2, 0), (WAIT, 1, 2, 0), (WAIT, 2, 2, 0),
    ]  # fmt: skip


def test_signals_of_later_passes_count_on():
    step = Step((Sync(1, 1),), (Move((Ref(0, INPUT, 0),), (Ref(1, OUTPUT, 0),), 300),), (Sync(1, 1), Sync(2, 1)))
    ops = stream_ops(DeviceProgram(3, 3, 128, (1, 2), (step, Step((), (), (Sync(1, 2),)))))
    assert [op.number for op in ops if op.kind == SIGNAL and op.peer == 1] == [1, 2, 3, 4, 5, 6, 7]
    assert [op.number for op in ops if op.kind == SIGNAL and op.peer == 2] == [1, 2, 3, 4]
    assert [op.number for op in ops if op.kind == WAIT and op.peer == 1] == [1, 2, 3, 4]
    assert [(op.number, op.step) for op in ops if op.kind == LAUNCH] == [(0, 0), (1, 0), (2, 0)]


def test_stochastic_codecs_are_refused():
    made = proved(find("direct").schedule(2))
    lengths = Lengths((8,), (8,))
    with pytest.raises(UsageError, match="stochastic rounding works on CPU arrays only"):
        device_plan(
            made, 0, 2, find("direct").collective, lengths, 4, "sum", Codec("int8", stochastic=True), None, 16
        )


@pytest.mark.parametrize("name", ["direct", "ring", "all_gather/bruck", "all_to_all/pairwise", "rabenseifner"])
def test_a_new_length_of_a_known_program_takes_about_a_millisecond(name):
    plan(name, 8, 1)
    took = []
    for elements in range(100, 120):
        before = time.process_time()
        plan(name, 8, elements)
        took.append(time.process_time() - before)
    # Of processor time, on a machine that may be busy; proving a schedule again is included.
    assert min(took) < 5e-3


def test_all_ranks_lower_a_program_alike():
    made = proved(find("swing").schedule(6))
    assert lower_for_device(made) is lower_for_device(proved(find("swing").schedule(6)))
    assert fastest(made, False, 10**6)[0] is fastest(made, False, 10**6)[0]
