"""Faults during transfers with tags and during receives from any rank."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import numpy as np
import pytest

import unisono
from letters import LONG
from unisono.errors import Aborted, CollectiveTimeout, MismatchError, PeerLost
from unisono.launch.spawn import outcomes_of

SOON_S = 10.0


def errors_of(function, size, *args):
    outcomes = outcomes_of(function, size, *args, timeout=60, patience_s=SOON_S)
    return [outcome.error for outcome in outcomes]


def wait_for_any_in_vain(comm, async_op):
    if comm.rank == 0:
        try:
            comm.recv(np.ones(4), tag=8, async_op=async_op, timeout=0.3).wait()
        except CollectiveTimeout as error:
            return str(error), error.rank
    if comm.rank == 1:
        comm.send(np.ones(4), dst=0, tag=9)  # another message than the awaited one
    time.sleep(0.6)
    return None


@pytest.mark.parametrize("async_op", [False, True], ids=["blocking", "async"])
def test_a_receive_from_any_rank_without_a_send_times_out(async_op):
    text, rank = unisono.spawn(wait_for_any_in_vain, 3, async_op)[0]
    assert "waiting for any rank in send or recv (tag 8); no rank has sent a message with this tag" in text
    assert rank is None


def wait_for_the_tag_in_vain(comm, async_op):
    """Other messages keep arriving, but not the awaited one."""
    if comm.rank == 0:
        with pytest.raises(CollectiveTimeout, match=r"waiting for rank 1 in send or recv \(tag 8\)") as caught:
            comm.recv(np.ones(4), src=1, tag=8, async_op=async_op, timeout=0.3).wait()
        return float(caught.value.parameters["seconds"])
    while True:
        comm.send(np.ones(1), dst=0, tag=9)


@pytest.mark.parametrize("async_op", [False, True], ids=["blocking", "async"])
def test_messages_with_other_tags_do_not_delay_a_timeout(async_op):
    receiver, sender = outcomes_of(wait_for_the_tag_in_vain, 2, async_op, timeout=60, patience_s=SOON_S)
    assert receiver.error is None, receiver.story
    assert 0.3 <= receiver.value < SOON_S  # the time since the begin of the call, not since the last message
    assert isinstance(sender.error, CollectiveTimeout)


def lose_a_peer(comm, async_op):
    comm.barrier()
    if comm.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if comm.rank == 0:
        work = comm.recv(np.ones(8), tag=1, async_op=async_op)
        work.wait()
    comm.barrier()


@pytest.mark.parametrize("async_op", [False, True], ids=["blocking", "async"])
def test_a_killed_rank_ends_a_receive_from_any(async_op):
    errors = errors_of(lose_a_peer, 3, async_op)
    assert isinstance(errors[0], PeerLost)
    assert errors[0].rank == 2


def send_and_die(comm):
    if comm.rank == 1:
        comm.send(np.full(4, 7), dst=0, tag=1)
        comm.send(np.full(4, 8), dst=0, tag=2)
        comm.close()
        os._exit(0)
    x, y = np.zeros(4, int), np.zeros(4, int)
    time.sleep(0.1)
    assert comm.recv(x, tag=2) == 1
    assert comm.recv(y, tag=1) == 1
    assert (x[0], y[0]) == (8, 7)
    with pytest.raises(PeerLost, match="every other rank has closed its communicator"):
        comm.recv(x)
    return "told"


def test_messages_sent_before_a_rank_closed_are_received_and_later_receives_fail():
    outcomes = outcomes_of(send_and_die, 2, timeout=60, patience_s=SOON_S)
    assert outcomes[0].value == "told", outcomes[0].story


def mismatch(comm, how, sent):
    """The messages before and after it match: only the one with the same tag counts."""
    if comm.rank == 1:
        comm.send(np.ones(3), dst=0, tag=1)
        comm.send(sent, dst=0, tag=2)
        comm.send(np.ones(3), dst=0, tag=3)
        comm.recv(np.ones(1), src=0)
        return
    if how == "unexpected":
        comm.recv(np.ones(3), src=1, tag=3)
    work = comm.recv(np.ones(3), None if how == "any" else 1, tag=2, async_op=how == "async")
    if how == "async":
        work.wait()


@pytest.mark.parametrize("how", ["named", "any", "async", "unexpected"])
@pytest.mark.parametrize("sent", [np.ones(4), np.ones(3, np.int64)], ids=["length", "dtype"])
def test_both_sides_must_have_the_same_dtype_and_length(how, sent):
    for error in errors_of(mismatch, 2, how, sent):
        assert isinstance(error, MismatchError), error
        assert f"rank 1 sends {sent.size} {sent.dtype} elements with tag 2" in str(error)
        assert "rank 0 receives 3 float64 elements" in str(error)


def fail_with_receives_posted(comm):
    arrays = [np.zeros(LONG) for _ in range(4)]
    works = [comm.recv(x, tag=tag, async_op=True) for tag, x in enumerate(arrays)]
    works.append(comm.recv(np.zeros(LONG), src=(comm.rank + 1) % comm.size, tag=7, async_op=True))
    with contextlib.suppress(Aborted):  # the abort may arrive before this rank has left the barrier
        comm.barrier()
        if comm.rank == 0:
            comm.abort("enough")
    for work in works:
        with pytest.raises(Aborted):
            work.wait(timeout=60)
        assert work.source_rank() is None
    return "told"


def test_an_abort_ends_all_waiting_receives():
    assert unisono.spawn(fail_with_receives_posted, 3) == ["told"] * 3


def wait_for_any_late(comm):
    if comm.rank == 1:
        time.sleep(1.5)
        comm.send(np.ones(1), dst=0)
        return 0.0
    before = time.process_time()
    comm.recv(np.ones(1))
    return time.process_time() - before


def test_a_wait_for_any_rank_does_not_keep_a_core_busy():
    assert max(unisono.spawn(wait_for_any_late, 2)) < 0.5
