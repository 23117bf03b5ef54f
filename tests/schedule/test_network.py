from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NAMES, written
from interleaving import Overrun, Stuck, lay_out, run_at_random
from unisono import collectives, find, play, prove
from unisono.errors import DeadlockError, UnmatchedError


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from([name for name in NAMES if not name.startswith("barrier")]),
    size=st.integers(1, 9), depth=st.integers(1, 3), length=st.integers(0, 60), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_every_interleaving_gives_the_same_bits_and_none_deadlocks_or_overruns(name, size, depth, length, seed):
    """The claim that a single run is a proof, tested with an executor that shares no code with the verifier."""
    schedule = find(name).schedule(size)
    collective = collectives.find(schedule.collective)
    if prove(schedule).equal_blocks_only:
        length -= length % size
    rng = np.random.default_rng(seed)
    memories = lay_out(schedule, length, np.float32)
    inputs = []
    for rank, memory in enumerate(memories):
        held = collective.held_before(rank, size, schedule.chunks)
        for slot in held:
            place = memory.places[slot]
            memory.write(slot, rng.standard_normal(place.stop - place.start).astype(np.float32))
        inputs.append(np.concatenate([memory.read(slot) for slot in held]) if held else None)
    run_at_random(schedule, memories, depth, seed)
    for rank, output in enumerate(play(schedule, inputs).outputs):
        if output is not None:
            slots = collective.held_after(rank, size, schedule.chunks)
            assert np.concatenate([memories[rank].read(slot) for slot in slots]).tobytes() == output.tobytes()


def test_an_exchange_that_needs_equal_blocks_overruns_with_unequal_ones():
    """The check above can fail: equal_blocks_only is about this case."""
    schedule = find("all_to_all/bruck").schedule(5)
    with pytest.raises(Overrun):
        run_at_random(schedule, lay_out(schedule, 7, np.float32), depth=1, seed=0)


def test_a_cycle_of_receives_is_a_deadlock_that_names_every_rank():
    circle = [f"recv_reduce 0 from {(rank + 1) % 3}\nsend 0 to {(rank - 1) % 3}" for rank in range(3)]
    with pytest.raises(DeadlockError) as caught:
        prove(written("all_reduce", 1, *circle))
    message = str(caught.value)
    for rank in range(3):
        assert f"rank {rank} waits in step 1 for rank {(rank + 1) % 3}" in message
    assert "no channel depth avoids this" in message


def test_waiting_for_a_rank_that_has_finished_is_a_missing_send():
    with pytest.raises(UnmatchedError, match="rank 1 finished without sending") as caught:
        prove(written("all_reduce", 1, "recv_reduce 0 from 1", ""))
    assert (caught.value.rank, caught.value.step) == (0, 0)
    assert str(caught.value.op) == "recv_reduce 0 from 1"


def test_a_message_that_is_never_received_is_rejected():
    with pytest.raises(UnmatchedError, match="from rank 0 to rank 1 was sent but never received"):
        prove(written("broadcast", 1, "send 0 to 1\nsend 0 to 1", "recv 0 from 0", root=0))


def test_a_send_into_a_channel_that_stays_full_is_rejected():
    with pytest.raises(UnmatchedError, match="finished without receiving"):
        prove(written("broadcast", 1, "send 0 to 1\nsend 0 to 1\nsend 0 to 1", "recv 0 from 0", root=0))


def test_both_ends_of_a_message_must_have_the_same_number_of_chunks():
    with pytest.raises(UnmatchedError, match="a different number of chunks") as caught:
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


def test_the_independent_executor_can_deadlock():
    """The check above can fail: a program that needs depth 2 stops at depth 1."""
    greedy = [
        "send 0 to 1\nsend 0 to 1\nrecv 0 from 1\nrecv 0 from 1",
        "send 0 to 0\nsend 0 to 0\nrecv 0 from 0\nrecv 0 from 0",
    ]
    schedule = written("all_reduce", 1, *greedy)
    with pytest.raises(Stuck):
        run_at_random(schedule, lay_out(schedule, 1, np.float32), depth=1, seed=0)
    run_at_random(schedule, lay_out(schedule, 1, np.float32), depth=2, seed=0)


def test_rounds_do_not_depend_on_the_order_in_which_a_step_is_written():
    """Rank 4 waits for a late message and three early ones in one step, listed first or last."""
    late = ["send 0 to 1", "recv 0 from 0\nsend 0-1 to 2", "recv 0-1 from 1\nsend 0-2 to 4", "send 3 to 4"]
    orders = ["recv 0-2 from 2; recv 3 from 3", "recv 3 from 3; recv 0-2 from 2"]
    rounds = {prove(written("gather", 5, *late, order, root=4)).rounds for order in orders}
    assert rounds == {3}


def test_a_rank_sends_one_message_and_receives_one_per_round():
    """A star whose centre does everything in a single step still needs a round for each message."""
    peers = range(1, 5)
    out = prove(written("broadcast", 1, "; ".join(f"send 0 to {p}" for p in peers), *["recv 0 from 0"] * 4, root=0))
    assert (out.levels, out.rounds) == (1, 4)
    back = "; ".join(f"recv {p} from {p}" for p in peers)
    gathered = prove(written("gather", 5, back, *(f"send {p} to 0" for p in peers), root=0))
    assert (gathered.levels, gathered.rounds) == (1, 4)
