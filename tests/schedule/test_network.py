from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NAMES, inputs_for, written
from interleaving import Stuck, run_at_random
from unisono import collectives, find, play, prove
from unisono.errors import DeadlockError, UnmatchedError
from unisono.player.play import _first_row


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from([name for name in NAMES if not name.startswith("barrier")]),
    size=st.integers(1, 9), depth=st.integers(1, 3), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_every_interleaving_gives_the_same_bits_and_none_gets_stuck(name, size, depth, seed):
    """The claim that a single run is a proof, tried against an executor that shares no code with ours."""
    schedule = find(name).schedule(size)
    rng = np.random.default_rng(seed)
    inputs = inputs_for(schedule, lambda rank, length: rng.standard_normal(length).astype(np.float32))
    collective = collectives.find(schedule.collective)
    rows = []
    for rank in range(size):
        first = _first_row(schedule, collective, rank, inputs)
        rows.append([None if cell is None else cell.values.copy() for cell in first])
    run_at_random(schedule, rows, depth, seed)
    played = play(schedule, inputs).outputs
    for rank, output in enumerate(played):
        slots = collective.held_after(rank, size, schedule.chunks)
        if output is not None:
            assert np.concatenate([rows[rank][slot] for slot in slots]).tobytes() == output.tobytes()


def test_a_circle_of_receives_is_a_deadlock_that_names_everyone():
    circle = [f"recv_reduce 0 from {(rank + 1) % 3}\nsend 0 to {(rank - 1) % 3}" for rank in range(3)]
    with pytest.raises(DeadlockError) as caught:
        prove(written("all_reduce", 1, *circle))
    message = str(caught.value)
    for rank in range(3):
        assert f"rank {rank} waits in step 0 for rank {(rank + 1) % 3}" in message
    assert "deeper channels do not help" in message


def test_waiting_for_a_rank_that_has_finished_is_a_missing_send():
    with pytest.raises(UnmatchedError, match="rank 1 has finished without sending") as caught:
        prove(written("all_reduce", 1, "recv_reduce 0 from 1", ""))
    assert (caught.value.rank, caught.value.step) == (0, 0)
    assert str(caught.value.op) == "recv_reduce 0 from 1"


def test_a_message_that_nobody_takes_is_refused():
    with pytest.raises(UnmatchedError, match="from rank 0 to rank 1 sent but never received"):
        prove(written("broadcast", 1, "send 0 to 1\nsend 0 to 1", "recv 0 from 0", root=0))


def test_a_sender_that_waits_for_room_which_nobody_makes_is_refused():
    with pytest.raises(UnmatchedError, match="finished without receiving"):
        prove(written("broadcast", 1, "send 0 to 1\nsend 0 to 1\nsend 0 to 1", "recv 0 from 0", root=0))


def test_the_two_ends_must_have_the_same_number_of_chunks():
    with pytest.raises(UnmatchedError, match="another number of chunks") as caught:
        prove(written("broadcast", 2, "send 0-1 to 1", "recv 0 from 0", root=0))
    assert caught.value.expected.startswith("1 ")
    assert caught.value.found.startswith("2 ")


def test_levels_count_the_longest_path_and_rounds_one_message_at_a_time():
    star = prove(find("broadcast/naive").schedule(5))
    assert (star.steps, star.levels, star.rounds) == (4, 4, 4)
    exchange = prove(find("all_gather/naive").schedule(5))
    assert (exchange.steps, exchange.levels, exchange.rounds) == (1, 1, 4)
    tree = prove(find("tree").schedule(8))
    assert (tree.levels, tree.rounds) == (6, 6)


def test_the_independent_executor_can_get_stuck():
    """The check above can fail: a program that needs depth 2 stops at depth 1."""
    greedy = [
        "send 0 to 1\nsend 0 to 1\nrecv 0 from 1\nrecv 0 from 1",
        "send 0 to 0\nsend 0 to 0\nrecv 0 from 0\nrecv 0 from 0",
    ]
    schedule = written("all_reduce", 1, *greedy)
    with pytest.raises(Stuck):
        run_at_random(schedule, [[np.ones(1)], [np.ones(1)]], depth=1, seed=0)
    run_at_random(schedule, [[np.ones(1)], [np.ones(1)]], depth=2, seed=0)


def test_rounds_do_not_depend_on_the_order_in_which_a_step_is_written():
    """Rank 4 waits for a late message and three early ones in one step, listed first or last."""
    late = ["send 0 to 1", "recv 0 from 0\nsend 0-1 to 2", "recv 0-1 from 1\nsend 0-2 to 4", "send 3 to 4"]
    orders = ["recv 0-2 from 2; recv 3 from 3", "recv 3 from 3; recv 0-2 from 2"]
    rounds = {prove(written("gather", 5, *late, order, root=4)).rounds for order in orders}
    assert rounds == {3}
