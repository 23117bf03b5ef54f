"""The verifier rejects incorrect schedules with location and reason, and counts the facts of correct ones."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from builders import NAMES, written
from unisono import Schedule, find, mapped, play, prove
from unisono.errors import DeadlockError, GoalError, HazardError, ScheduleError, UnmatchedError, UsageError
from unisono.schedule.schedule import DEEPEST
from unisono.verifier import trees
from unisono.verifier.messages import LEFT_EARLY

SWAP = ["send 0 to 1; recv_reduce 0 from 1", "send 0 to 0; recv_reduce 0 from 0"]


def rejection(kind, schedule, depth=1):
    with pytest.raises(kind) as caught:
        prove(schedule, depth)
    assert type(caught.value) is kind
    return caught.value


def test_a_swap_is_the_smallest_all_reduce():
    proof = prove(written("all_reduce", 1, *SWAP))
    assert proof.tree == "a0+a1"
    assert (proof.steps, proof.messages, proof.sent, proof.received) == (1, 2, 1, 1)
    assert (proof.latency_ratio, proof.bandwidth_ratio, proof.remarks) == (1, 1, [])


def test_a_missing_contribution_is_named():
    error = rejection(GoalError, written("all_reduce", 1, "send 0 to 1", "recv_reduce 0 from 0"))
    assert (error.rank, error.chunk) == (0, 0)
    assert error.expected == "a0+a1 (the sum of chunk 0 of 2 ranks: 0, 1)"
    assert error.found == "a0 (chunk 0 of rank 0); missing: 1"


def test_double_counting_is_rejected_at_the_step_where_it_happens():
    again = [SWAP[0] + "\n" + SWAP[0], SWAP[1] + "\n" + SWAP[1]]
    error = rejection(GoalError, written("all_reduce", 1, *again))
    assert "counted twice" in error.what
    assert error.step == 1
    assert str(error.op).startswith("recv_reduce 0")


def test_a_complete_sum_that_is_added_instead_of_stored_is_counted_twice():
    schedule = written("all_reduce", 1, "recv_reduce 0 from 1\nsend 0 to 1", "send 0 to 0\nrecv_reduce 0 from 0")
    error = rejection(GoalError, schedule)
    assert (error.rank, error.step) == (1, 1)
    assert "recv instead of recv_reduce" in error.hint


def test_both_ends_of_a_message_must_name_the_same_chunk():
    error = rejection(
        UnmatchedError, written("broadcast", 2, "send 0 to 1\nsend 1 to 1", "recv 1 from 0\nrecv 0 from 0", root=0)
    )
    assert (error.rank, error.step, error.chunk) == (1, 0, 1)
    assert error.found == "a0 (chunk 0 of rank 0), sent as chunk 0"


def test_the_right_chunk_may_pass_through_scratch():
    prove(written("broadcast", 1, "copy 0 to 1\nsend 1 to 1", "recv 1 from 0\ncopy 1 to 0", slots=2, root=0))


def test_different_chunks_are_never_added():
    schedule = written("all_reduce", 2, "copy 0 to 2\ncombine 1 into 2", "", slots=3)
    assert "different chunks are added" in rejection(GoalError, schedule).what


def test_an_empty_slot_cannot_be_sent():
    error = rejection(HazardError, written("broadcast", 1, "recv 0 from 1", "send 0 to 0", root=0))
    assert (error.rank, error.step, str(error.op)) == (1, 0, "send 0 to 0")


def test_data_cannot_be_added_to_an_empty_slot():
    error = rejection(HazardError, written("broadcast", 1, "send 0 to 1", "recv_reduce 0 from 0", root=0))
    assert "nothing was ever written to it" in error.what


def test_the_input_of_an_all_to_all_must_not_change():
    programs = ["copy 0 to 2\nsend 1 to 1; recv 1 from 1", "copy 1 to 3\nsend 0 to 0; recv 2 from 0"]
    error = rejection(HazardError, written("all_to_all", 2, *programs, slots=4))
    assert "slot 1 is input" in error.what


def test_a_result_on_the_wrong_rank_is_rejected():
    error = rejection(GoalError, written("scatter", 2, "send 0 to 1", "recv 0 from 0", root=0))
    assert (error.rank, error.chunk, error.found) == (1, 1, "nothing")


def test_a_barrier_that_does_not_wait_for_every_rank_is_rejected():
    programs = ["recv_reduce 0 from 1\nsend 0 to 1", "send 0 to 0\nrecv 0 from 0", ""]
    error = rejection(GoalError, written("barrier", 1, *programs))
    assert error.id == LEFT_EARLY.id


def test_in_a_barrier_a_rank_may_be_counted_twice():
    prove(written("barrier", 1, *(f"{line}\n{line}" for line in SWAP)))


# --- agreement -------------------------------------------------------------------------------------------------

THREE_ORDERS = [
    "send 0 to 1; send 0 to 2; recv_reduce 0 from 1; recv_reduce 0 from 2",
    "send 0 to 0; send 0 to 2; recv_reduce 0 from 0; recv_reduce 0 from 2",
    "send 0 to 0; send 0 to 1; recv_reduce 0 from 0; recv_reduce 0 from 1",
]


def test_ranks_that_add_in_different_orders_are_rejected_with_both_trees():
    error = rejection(GoalError, written("all_reduce", 1, *THREE_ORDERS))
    assert "a different order" in error.what
    assert error.expected == "as on rank 0: (a0+a1)+a2"
    assert error.found == "on rank 2: (a0+a2)+a1"


def test_swapping_the_sides_of_an_addition_keeps_agreement():
    """Rank 0 computes a0+a1 and rank 1 computes a1+a0."""
    assert prove(written("all_reduce", 1, *SWAP)).tree == "a0+a1"


def test_a_reduce_needs_no_agreement_as_one_rank_adds():
    programs = ["recv_reduce 0 from 1; recv_reduce 0 from 2", "send 0 to 0", "send 0 to 0"]
    assert prove(written("reduce", 1, *programs, root=0)).tree == "(a0+a1)+a2"


def test_the_naive_all_reduce_adds_in_rank_order_everywhere():
    assert prove(find("naive").schedule(5)).tree == "(((a0+a1)+a2)+a3)+a4"


def test_the_tree_of_a_ring_starts_with_the_right_hand_neighbour():
    assert prove(find("ring").schedule(4)).tree == "a0+((a1+a2)+a3)"


def test_a_tree_of_a_thousand_ranks_can_be_written():
    proof = prove(find("reduce/naive").schedule(1500))
    assert proof.tree.count("+") == 1499


# --- depth -----------------------------------------------------------------------------------------------------

EAGER = ["send 0 to 1\nsend 1 to 1\nrecv_reduce 0 from 1\nrecv_reduce 1 from 1",
         "send 0 to 0\nsend 1 to 0\nrecv_reduce 0 from 0\nrecv_reduce 1 from 0"]  # fmt: skip


def test_a_program_can_need_deeper_channels():
    schedule = written("all_reduce", 2, *EAGER)
    error = rejection(DeadlockError, schedule, depth=1)
    assert "at channel depth 1; channels of depth 2 avoid this" in error.what
    assert prove(schedule, depth=2).depth == 2
    assert prove(schedule, depth=None).depth is None


@pytest.mark.parametrize("needed", [2, 3, 5, 8])
def test_the_sufficient_depth_is_found(needed):
    sends = "\n".join(f"send {chunk} to {{peer}}" for chunk in range(needed))
    takes = "\n".join(f"recv_reduce {chunk} from {{peer}}" for chunk in range(needed))
    programs = [f"{sends}\n{takes}".format(peer=1), f"{sends}\n{takes}".format(peer=0)]
    schedule = written("all_reduce", needed, *programs)
    assert f"channels of depth {needed} avoid this" in rejection(DeadlockError, schedule).what
    prove(schedule, depth=needed)
    rejection(DeadlockError, schedule, depth=needed - 1)


# --- facts -----------------------------------------------------------------------------------------------------


def test_bytes_are_exact_fractions_of_the_vector():
    proof = prove(find("ring").schedule(5))
    assert proof.sent == proof.received == proof.least_bytes == Fraction(8, 5)
    assert proof.sent_total == 8
    assert (proof.steps, proof.levels, proof.rounds) == (8, 8, 8)
    assert (proof.messages, proof.messages_per_rank) == (40, 8)


def test_the_busiest_rank_counts_whether_it_sends_or_receives():
    proof = prove(find("gather/naive").schedule(5))
    assert (proof.sent, proof.received, proof.bandwidth_ratio) == (Fraction(1, 5), Fraction(4, 5), 1)


@pytest.mark.parametrize(
    ("name", "size", "extra"),
    [
        ("ring", 5, 0),  # in place
        ("naive", 5, 4),  # a copy of the message of every other rank
        ("scatter/naive", 5, 0),
        ("scatter/tree", 8, Fraction(3, 8)),  # the blocks that the busiest rank holds for others
        ("all_to_all/bruck", 8, 0),  # its output has enough room
        ("reduce_scatter/ring", 8, Fraction(6, 8)),  # partial sums, because the input is kept
        ("reduce_scatter/naive", 8, 0),
    ],
)
def test_extra_memory_is_the_memory_beside_input_and_output(name, size, extra):
    assert prove(find(name).schedule(size)).extra_memory == extra


@pytest.mark.parametrize("name", NAMES)
def test_a_single_rank_sends_nothing(name):
    proof = prove(find(name).schedule(1))
    assert (proof.messages, proof.sent, proof.remarks) == (0, 0, [])


def test_the_largest_message_is_the_capacity_that_a_channel_needs():
    assert prove(find("ring").schedule(8)).largest_message == Fraction(1, 8)
    assert prove(find("rabenseifner").schedule(8)).largest_message == Fraction(1, 2)


def test_an_exchange_that_forwards_blocks_through_outputs_needs_equal_blocks():
    """A block that passes through the output slot of another rank must fit there."""
    needs = {name: prove(find(f"all_to_all/{name}").schedule(5)).equal_blocks_only for name in
             ("naive", "pairwise", "bruck", "hierarchical")}  # fmt: skip
    assert needs == {"naive": False, "pairwise": False, "bruck": True, "hierarchical": False}


def test_every_chunk_has_an_expression_tree():
    assert trees(find("ring").schedule(3)) == ["a0+(a1+a2)", "(b0+b2)+b1", "(c0+c1)+c2"]


@pytest.mark.parametrize("collective", ["all_gather", "gather", "all_to_all", "reduce_scatter", "scatter"])
def test_a_rank_may_have_several_chunks(collective):
    """The naive algorithm of each collective with blocks, with two chunks for each rank."""
    size, root = 3, 1 if collective in ("gather", "scatter") else None
    inner = find(f"{collective}/naive")
    halves = [(2 * block, 2 * block + 1) for block in range(2 * size)]
    programs = [
        [*mapped(inner(rank, size, *([] if root is None else [root])), chunks=halves)] for rank in range(size)
    ]
    rows = 2 if collective == "all_to_all" else 1
    schedule = Schedule(collective, "halves", size, 2 * size, 2 * size * rows, make=programs.__getitem__, root=root)
    whole = prove(inner.schedule(size, root))
    assert prove(schedule).sent == whole.sent
    swapped = [
        [tuple(op._replace(chunks=op.chunks[::-1]) if op.kind != "send" else op for op in step) for step in program]
        for program in programs
    ]
    with pytest.raises(ScheduleError):
        prove(dataclasses.replace(schedule, make=swapped.__getitem__))


def test_in_an_exchange_pieces_of_a_block_keep_their_order():
    programs = [
        "send 2-3 to 1; recv 6-7 from 1\ncopy 0 to 5\ncopy 5 to 4\ncopy 1 to 5",
        "send 0-1 to 0; recv 4-5 from 0\ncopy 2-3 to 6-7",
    ]
    error = rejection(UnmatchedError, written("all_to_all", 4, *programs, slots=8))
    assert (error.rank, error.step, error.chunk) == (0, 1, 5)


# --- barriers --------------------------------------------------------------------------------------------------


def test_a_barrier_may_use_plain_tokens():
    """The messages of a barrier are empty: a receive tells as much as a receive-and-add."""
    root = "recv 0 from 1\nrecv 0 from 2\nsend 0 to 1\nsend 0 to 2"
    prove(written("barrier", 1, root, *["send 0 to 0\nrecv 0 from 0"] * 2))
    prove(written("barrier", 1, root.replace("send 0", "send 1"), *["send 0 to 0\nrecv 1 from 0"] * 2, slots=2))
    assert all(
        output.all() for output in play(written("barrier", 1, root, *["send 0 to 0\nrecv 0 from 0"] * 2)).outputs
    )


def test_a_barrier_with_plain_tokens_must_wait_for_every_rank():
    early = "recv 0 from 1\nsend 0 to 1\nsend 0 to 2\nrecv 0 from 2"
    error = rejection(GoalError, written("barrier", 1, early, *["send 0 to 0\nrecv 0 from 0"] * 2))
    assert error.found == "not known to have arrived: 2"


# --- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, -1, 1.5, "1", True])
def test_a_depth_is_a_number_of_messages(depth):
    with pytest.raises(UsageError, match="expected 1 or more"):
        prove(find("ring").schedule(3), depth)


def test_a_schedule_too_large_to_play_is_rejected_at_once():
    with pytest.raises(UsageError, match="a proof handles at most"):
        prove(Schedule("all_reduce", "huge", 2, 1, 10**9, make=lambda rank: []))


def pushy(size):
    """A ring that sends two messages before it receives two, and counts inputs twice from three ranks on."""
    programs = []
    for rank in range(size):
        right, left = (rank + 1) % size, (rank - 1) % size
        hop = f"send 0 to {right}\nsend 1 to {right}\nrecv_reduce 0 from {left}\nrecv_reduce 1 from {left}"
        programs.append("\n".join([hop] * (size - 1)))
    return written("all_reduce", 2, *programs)


def test_a_deadlock_names_the_depth_that_avoids_it_even_if_the_program_has_another_error():
    error = rejection(DeadlockError, pushy(3))
    assert error.what.endswith("at channel depth 1; channels of depth 2 avoid this")
    assert "@algorithm" not in error.hint  # because the program would still be incorrect
    assert error.hint.endswith("with channels of depth 2 the program has another error: the input of rank 0 is "
                               "counted twice")  # fmt: skip
    assert rejection(GoalError, pushy(3), depth=2).id == "verifier.counted_twice"


def test_a_depth_is_recommended_if_it_makes_the_program_correct():
    error = rejection(DeadlockError, pushy(2))
    assert error.hint.endswith("or declare @algorithm(..., depth=2)")


def test_a_depth_that_cannot_be_declared_is_not_recommended():
    many = DEEPEST + 1
    programs = [
        "\n".join([f"send {chunk} to {1 - rank}" for chunk in range(many)]
                  + [f"recv_reduce {chunk} from {1 - rank}" for chunk in range(many)])
        for rank in range(2)
    ]  # fmt: skip
    error = rejection(DeadlockError, written("all_reduce", many, *programs))
    assert f"channels of depth {many} avoid this" in error.what
    assert f"an algorithm can declare a depth of at most {DEEPEST}" in error.hint
