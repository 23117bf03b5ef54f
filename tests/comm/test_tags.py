"""Tags, and receives from any rank: the matching of messages and receives."""

from __future__ import annotations

import os
import random
import time

import numpy as np
import pytest

from letters import LONG, is_letter, letter
from unisono import spawn
from unisono.comm.dispatch import LARGEST_TAG

LENGTHS = {"empty": 0, "short": 3, "a slot": 1000, "many slots": LONG}


# ---- tags ------------------------------------------------------------------------------------------------------


def in_any_order(comm, length, sends_block, receives_block, order):
    tags = range(len(order))
    if comm.rank == 0:
        works = [comm.send(letter(0, tag, length), dst=1, tag=tag, async_op=not sends_block) for tag in tags]
    else:
        arrays = [np.zeros(length, int) for _ in tags]
        works = [comm.recv(arrays[tag], src=0, tag=tag, async_op=not receives_block) for tag in order]
    for work in works:
        if work is not None:
            work.wait(timeout=60)
    assert comm.rank == 0 or all(is_letter(arrays[tag], 0, tag) for tag in tags)
    comm.barrier()


@pytest.mark.parametrize("receives_block", [True, False], ids=["blocking recv", "async recv"])
@pytest.mark.parametrize("sends_block", [True, False], ids=["blocking send", "async send"])
@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_messages_with_different_tags_are_received_in_any_order(pools, length, sends_block, receives_block):
    for order in ([5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]):
        arguments = (length, sends_block, receives_block, order)
        pools[2].call(in_any_order, *([each] * 2 for each in arguments))


def in_order_within_a_tag(comm):
    rounds, tags = 30, (0, 7, LARGEST_TAG)
    if comm.rank == 0:
        works = [
            comm.send(letter(0, place, 50 * place, number), dst=1, tag=tag, async_op=True)
            for number in range(rounds)
            for place, tag in enumerate(tags)
        ]
        for work in works:
            work.wait(timeout=60)
    else:
        for place, tag in reversed(list(enumerate(tags))):
            for number in range(rounds):
                x = np.zeros(50 * place, int)
                work = comm.recv(x, src=0, tag=tag, async_op=number % 3 == 0)
                if work is not None:
                    work.wait(timeout=60)
                assert is_letter(x, 0, place, number)


def test_messages_with_the_same_tag_arrive_in_order(pools):
    pools[2].call(in_order_within_a_tag)


def shuffled_exchange(comm, seed):
    """Every rank sends to all others, with tags and lengths in a random order, and receives in another order."""
    lengths = [0, 1, 4, 5, 5000, 50_000]
    others = [peer for peer in range(comm.size) if peer != comm.rank]
    pairs = [(peer, tag) for peer in others for tag in range(len(lengths))]
    mine = random.Random(seed + comm.rank)
    works = [
        comm.send(letter(comm.rank, tag, lengths[tag]), dst=peer, tag=tag, async_op=True)
        for peer, tag in mine.sample(pairs, len(pairs))
    ]
    arrays = {pair: np.zeros(lengths[pair[1]], int) for pair in pairs}
    for peer, tag in mine.sample(pairs, len(pairs)):
        work = comm.recv(arrays[peer, tag], src=peer, tag=tag, async_op=mine.random() < 0.5)
        works += [work] if work is not None else []
    for work in works:
        work.wait(timeout=60)
    assert all(is_letter(x, peer, tag) for (peer, tag), x in arrays.items())


@pytest.mark.parametrize("size", [2, 3, 5])
def test_all_ranks_exchange_messages_in_random_orders(pools, size):
    for seed in range(10):
        pools[size].call(shuffled_exchange, [100 * seed] * size)


def exchange_often(comm, times):
    for seed in range(times):
        shuffled_exchange(comm, 100 * seed)


@pytest.mark.slow
@pytest.mark.parametrize("times", [500, pytest.param(40_000, marks=pytest.mark.long)])
def test_the_transfer_thread_lives_as_long_as_it_is_needed(times):
    """A rank that waits in recv may complete the last receive of the thread while the thread looks for work.

    The thread once ended in this case, which took 8,000 to 25,000 exchanges to happen.
    """
    spawn(exchange_often, 3, times, timeout=30.0)


def stay_in_the_channel(comm):
    """While no receive from a peer waits, its messages are not read: a long one stays at the sender."""
    if comm.rank == 0:
        work = comm.send(letter(0, 1, LONG), dst=1, tag=1, async_op=True)
        comm.barrier()
        waits = not work.done()
        comm.barrier()
        work.wait(timeout=60)
        return waits
    time.sleep(0.05)
    comm.barrier()
    comm.barrier()
    x = np.zeros(LONG, int)
    comm.recv(x, src=0, tag=1)
    return is_letter(x, 0, 1)


def test_messages_without_a_waiting_receive_are_not_read(pools):
    assert pools[2].call(stay_in_the_channel) == [True, True]


def complete_while_another_waits(comm):
    """An asynchronous receive gets its message although an earlier one from the same peer is still waiting."""
    if comm.rank == 0:
        comm.send(letter(0, 2, LONG), dst=1, tag=2)
        comm.barrier()
        comm.send(letter(0, 1, LONG), dst=1, tag=1)
        return
    first, second = np.zeros(LONG, int), np.zeros(LONG, int)
    waiting = comm.recv(first, src=0, tag=1, async_op=True)
    comm.recv(second, src=0, tag=2)
    assert not waiting.done()
    assert "from rank 0 with tag 1, running" in repr(waiting)
    comm.barrier()
    waiting.wait(timeout=60)
    assert is_letter(first, 0, 1)
    assert is_letter(second, 0, 2)


def test_a_receive_does_not_wait_for_earlier_ones_with_other_tags(pools):
    pools[2].call(complete_while_another_waits)


def threads_with_tags(comm):
    import threading

    done = []

    def receive(tag):
        for number in range(20):
            x = np.zeros(1000 * tag, int)
            comm.recv(x, src=0, tag=tag)
            assert is_letter(x, 0, tag, number)
        done.append(tag)

    if comm.rank == 0:
        for number in range(20):
            for tag in (3, 1, 2):
                comm.send(letter(0, tag, 1000 * tag, number), dst=1, tag=tag)
        return []
    threads = [threading.Thread(target=receive, args=(tag,)) for tag in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(done)


def test_several_threads_can_receive_from_one_rank(pools):
    assert pools[2].call(threads_with_tags) == [[], [1, 2, 3]]


# ---- from any rank ---------------------------------------------------------------------------------------------


def gather_from_any(comm, length, async_op):
    if comm.rank > 0:
        time.sleep(random.Random(os.getpid()).random() * 0.02)
        comm.send(letter(comm.rank, 9, length), dst=0, tag=9)
        return None
    arrays = [np.zeros(length, int) for _ in range(comm.size - 1)]
    heard = [comm.recv(x, tag=9, async_op=async_op) for x in arrays]
    if async_op:
        for work in heard:
            work.wait(timeout=60)
        heard = [work.source_rank() for work in heard]
    assert all(is_letter(x, source, 9) for x, source in zip(arrays, heard, strict=True))
    return sorted(heard)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("async_op", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_a_receive_from_any_rank_returns_the_source(pools, size, async_op, length):
    heard = pools[size].call(gather_from_any, [length] * size, [async_op] * size)
    assert heard[0] == list(range(1, size))


def any_in_the_order_of_arrival(comm):
    """Ranks send one after the other: their messages are received in this order, unexpected or not."""
    order = [2, 1, 4, 3]
    for turn, sender in enumerate(order):
        if comm.rank == sender:
            comm.send(np.array([sender]), dst=0, tag=5)
            comm.send(np.array([turn]), dst=0, tag=6)
        if comm.rank == 0:
            x = np.zeros(1, int)
            comm.recv(x, src=sender, tag=6)  # makes the other message unexpected
            assert x[0] == turn
        comm.barrier()
    return [comm.recv(np.zeros(1, int), tag=5) for _ in order] == order if comm.rank == 0 else True


def test_unexpected_messages_are_received_in_the_order_of_arrival(pools):
    assert all(pools[5].call(any_in_the_order_of_arrival))


def any_beside_named(comm, any_first):
    """The first message with the tag goes to the first receive; the second message, to the second."""
    if comm.rank == 0:
        named, anyone = np.zeros(LONG, int), np.zeros(LONG, int)
        works = {}
        for kind in ("any", "named") if any_first else ("named", "any"):
            works[kind] = comm.recv(*((anyone,) if kind == "any" else (named, 1)), tag=3, async_op=True)
        comm.barrier()
        for work in works.values():
            work.wait(timeout=60)
        assert works["any"].source_rank() == works["named"].source_rank() == 1
        assert is_letter(anyone, 1, 3, number=0 if any_first else 1)
        assert is_letter(named, 1, 3, number=1 if any_first else 0)
        return
    comm.barrier()
    if comm.rank == 1:
        for number in range(2):
            comm.send(letter(1, 3, LONG, number), dst=0, tag=3)


@pytest.mark.parametrize("any_first", [False, True], ids=["named first", "any first"])
def test_receives_from_any_rank_and_from_a_given_rank_are_served_in_order(pools, any_first):
    pools[3].call(any_beside_named, [any_first] * 3)


def any_does_not_wait_for_named(comm):
    """A waiting receive from rank 1 does not keep the message of rank 2 from a receive from any rank, nor its own."""
    if comm.rank == 0:
        named, anyone = np.zeros(4, int), np.zeros(LONG, int)
        work = comm.recv(named, src=1, tag=3, async_op=True)
        assert work.source_rank() is None
        assert comm.recv(anyone, tag=4) == 2
        assert is_letter(anyone, 2, 4)
        comm.barrier()
        work.wait(timeout=60)
        assert work.source_rank() == 1
        assert is_letter(named, 1, 3)
        return
    if comm.rank == 2:
        comm.send(letter(2, 5, LONG), dst=0, tag=5, async_op=True)
        comm.send(letter(2, 4, LONG), dst=0, tag=4)
    comm.barrier()
    if comm.rank == 1:
        comm.send(letter(1, 3, 4), dst=0, tag=3)


def leftovers(comm):
    x = np.zeros(LONG, int)
    if comm.rank == 0:
        assert comm.recv(x, tag=5) == 2
        assert is_letter(x, 2, 5)
    comm.barrier()


def test_receives_from_any_rank_and_from_a_given_rank_can_wait_together(pools):
    pools[3].call(any_does_not_wait_for_named)
    pools[3].call(leftovers)


def other_kinds_of_work(comm):
    sent = comm.send(np.ones(1), dst=1 - comm.rank, async_op=True)
    comm.recv(np.ones(1))
    sent.wait()
    reduced = comm.all_reduce(np.ones(1), async_op=True)
    reduced.wait()
    return sent.source_rank(), reduced.source_rank()


def test_only_a_receive_has_a_source(pools):
    assert pools[2].call(other_kinds_of_work) == [(None, None)] * 2
