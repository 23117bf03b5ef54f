"""Faults: whatever happens to a rank, the other ranks are told soon, with the reason."""

from __future__ import annotations

import os
import re
import resource
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import unisono
from unisono.errors import Aborted, CollectiveTimeout, CommError, MismatchError, PeerLost, UsageError
from unisono.launch.spawn import outcomes_of

# The limit for events that usually take milliseconds, on a busy machine; docs/performance.md has the measured times.
SOON_S = 10.0


def errors_of(function, size, *args, timeout=60.0, patience_s=SOON_S):
    """Return the exception of every rank; None for ranks without one."""
    return [outcome.error for outcome in outcomes_of(function, size, *args, timeout=timeout, patience_s=patience_s)]


# ---- ranks that make different calls ----------------------------------------------------------------------------


def differing(comm, calls):
    x = np.ones(16, np.float32)
    calls[comm.rank](comm, x)
    comm.barrier()


def exchange(comm, length):
    sizes = [length] * comm.size
    comm.all_to_all(np.ones(sum(sizes)), np.ones(sum(sizes)), in_sizes=sizes, out_sizes=sizes)


MISMATCHES = {
    "collective": (lambda c, x: c.all_reduce(x), lambda c, x: c.broadcast(x)),
    "count": (lambda c, x: c.all_reduce(x), lambda c, x: c.all_reduce(x[:8])),
    "long count": (lambda c, x: c.all_reduce(np.ones(10**5)), lambda c, x: c.all_reduce(np.ones(10**5 + 1))),
    "dtype": (lambda c, x: c.all_reduce(x), lambda c, x: c.all_reduce(x.view(np.int32))),
    "op": (lambda c, x: c.all_reduce(x), lambda c, x: c.all_reduce(x, op="max")),
    "root of a broadcast": (lambda c, x: c.broadcast(x, root=0), lambda c, x: c.broadcast(x, root=1)),
    "root of a reduce": (lambda c, x: c.reduce(x, root=0), lambda c, x: c.reduce(x, root=1)),
    "algorithm": (lambda c, x: c.all_reduce(x, algorithm="ring"), lambda c, x: c.all_reduce(x, algorithm="tree")),
    "order": (lambda c, x: (c.all_reduce(x), c.barrier()), lambda c, x: (c.barrier(), c.all_reduce(x))),
    "barrier": (lambda c, x: c.barrier(), lambda c, x: c.all_reduce(x)),
    "sizes": (
        lambda c, x: c.all_gather(np.ones(2 * c.size), np.ones(2), out_sizes=[2] * c.size),
        lambda c, x: c.all_gather(np.ones(3 * c.size), np.ones(3), out_sizes=[3] * c.size),
    ),
    "sizes of an all-to-all": (
        lambda c, x: c.all_to_all(
            np.ones(2 * c.size), np.ones(2 * c.size), in_sizes=[2] * c.size, out_sizes=[2] * c.size
        ),
        lambda c, x: c.all_to_all(
            np.ones(3 * c.size), np.ones(3 * c.size), in_sizes=[3] * c.size, out_sizes=[3] * c.size
        ),
    ),
}


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("what", MISMATCHES)
def test_ranks_that_make_different_calls_are_told_both_calls(what, size):
    most, last = MISMATCHES[what]
    errors = errors_of(differing, size, [most] * (size - 1) + [last])
    assert all(isinstance(error, MismatchError) for error in errors), errors
    text = str(errors[0])
    assert f"rank {size - 1}" in text, text
    assert len({str(error) for error in errors}) == 1, "all ranks tell the same story"


def test_the_message_names_both_calls():
    errors = errors_of(differing, 2, [MISMATCHES["op"][0], MISMATCHES["op"][1]])
    text = str(errors[1])
    assert "all_reduce(16 float32, op=sum, algorithm=" in text
    assert "all_reduce(16 float32, op=max, algorithm=" in text
    assert "call 1" in text


# ---- ranks that die ---------------------------------------------------------------------------------------------


def die_or_wait(comm, when, victim, loops):
    x = np.ones(50_000, np.float32)
    if when == "before the first call" and comm.rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    for turn in range(loops):
        if when == "between calls" and comm.rank == victim and turn == loops // 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if when == "in the middle of a call" and comm.rank == victim and turn == 2:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
        comm.all_reduce(x, algorithm="ring" if turn % 2 else "direct")
        if when == "in the middle of a call":
            loops += 1
    while when == "in the middle of a call":
        comm.all_reduce(x)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("when", ["before the first call", "between calls", "in the middle of a call"])
def test_a_killed_rank_is_named_to_every_survivor(when, size):
    victim = size - 1
    errors = errors_of(die_or_wait, size, when, victim, 6)
    for rank, error in enumerate(errors):
        assert isinstance(error, PeerLost), f"rank {rank}: {error!r}"
        assert error.rank == victim
        assert f"rank {victim}" in str(error)


def die_in_background(comm):
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    work = comm.all_reduce(np.ones(8), async_op=True)
    with pytest.raises(PeerLost):
        work.wait()
    assert isinstance(work.exception(), PeerLost)
    assert work.done()
    with pytest.raises(PeerLost):
        comm.barrier()
    return "told"


def test_a_killed_rank_is_named_by_an_asynchronous_call():
    outcomes = outcomes_of(die_in_background, 2, patience_s=SOON_S)
    assert outcomes[0].value == "told", outcomes[0].story


def lose_peer_in_transfer(comm):
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.recv(np.ones(8), src=1)


def test_a_receive_from_a_killed_rank_ends():
    errors = errors_of(lose_peer_in_transfer, 2)
    assert isinstance(errors[0], PeerLost)


# ---- ranks that are absent ---------------------------------------------------------------------------------------


def stop_or_wait(comm, victim):
    comm.barrier()
    if comm.rank == victim:
        os.kill(os.getpid(), signal.SIGSTOP)
    began = time.monotonic()
    try:
        comm.all_reduce(np.ones(4), timeout=0.5)
    finally:
        assert time.monotonic() - began >= 0.4


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_a_stopped_rank_causes_a_timeout_that_names_the_rank_and_the_call(size):
    errors = errors_of(stop_or_wait, size, size - 1, patience_s=3)  # the stopped rank does not end by itself
    for error in errors[:-1]:
        assert isinstance(error, CollectiveTimeout), error
        assert f"rank {size - 1}" in str(error)
        assert "at step" in str(error)
        assert "has not entered this call (it has made 1 of 2 calls)" in str(error)
        assert re.search(rf"rank {size - 1} \(process \d+\) is stopped, by a signal or a debugger", str(error))


def wait_elsewhere(comm):
    """Rank 1 waits for rank 0, which waits for rank 2 in another communicator; rank 2 is stopped."""
    pair = comm.split(0 if comm.rank < 2 else 1)
    comm.barrier()
    if comm.rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    if comm.rank == 0:
        comm.recv(np.ones(4), src=2, timeout=30)
    pair.barrier(timeout=1.0)


@pytest.mark.slow
def test_a_timeout_names_the_rank_that_holds_up_others_in_another_communicator():
    errors = errors_of(wait_elsewhere, 3, patience_s=3)
    assert isinstance(errors[1], CollectiveTimeout), errors
    assert errors[1].rank == 2
    assert "rank 0 is waiting for rank 2 in another communicator; rank 2 is stopped" in str(errors[1])


def stop_while_waiting(comm):
    """Rank 1 is stopped while it waits for rank 0, which waits for rank 1 in turn."""
    comm.barrier()
    if comm.rank == 1:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        comm.recv(np.ones(4), src=0, tag=1)
    comm.recv(np.ones(4), src=1, tag=2, timeout=1.5)


@pytest.mark.slow
def test_a_rank_that_is_stopped_while_it_waits_is_blamed():
    errors = errors_of(stop_while_waiting, 2, patience_s=3)
    assert isinstance(errors[0], CollectiveTimeout), errors
    assert errors[0].rank == 1
    assert re.search(r"rank 1 is waiting for rank 0 in send or recv; rank 1 .* is stopped", str(errors[0]))


def wait_in_vain(comm):
    if comm.rank == 0:
        with pytest.raises(CollectiveTimeout, match="waiting for rank 1"):
            comm.recv(np.ones(4), src=1, timeout=0.3)
    else:
        time.sleep(0.6)
    return True


def test_a_receive_without_a_send_times_out():
    assert unisono.spawn(wait_in_vain, 2) == [True, True]


# ---- ranks that leave --------------------------------------------------------------------------------------------


def fail_or_wait(comm):
    if comm.rank == 1:
        raise ZeroDivisionError("my own mistake")
    comm.all_reduce(np.ones(4))


def test_an_exception_in_one_rank_aborts_the_others_with_its_reason():
    errors = errors_of(fail_or_wait, 3)
    assert isinstance(errors[1], ZeroDivisionError)
    for error in (errors[0], errors[2]):
        assert isinstance(error, Aborted)
        assert "rank 1 aborted: ZeroDivisionError: my own mistake" in str(error)


def fail_or_wait_in_a_part(comm):
    part = comm.split(0, key=-comm.rank)
    inner = part.duplicate()
    if comm.rank == 1:
        raise ZeroDivisionError("my own mistake")
    (part if comm.rank == 0 else inner).all_reduce(np.ones(4))


def test_an_exception_in_one_rank_also_aborts_split_communicators():
    errors = errors_of(fail_or_wait_in_a_part, 3)
    for error in (errors[0], errors[2]):
        assert isinstance(error, Aborted)
        assert "rank 1 of the job (rank 1 of its group) aborted: ZeroDivisionError: my own mistake" in str(error)


def leave_or_wait(comm):
    if comm.rank == 1:
        comm.close()
        return
    comm.all_reduce(np.ones(4))


def test_waiting_for_a_rank_that_has_closed_is_an_error():
    errors = errors_of(leave_or_wait, 2)
    assert isinstance(errors[0], PeerLost)
    assert "rank 1 has closed its communicator" in str(errors[0])


def broadcast_and_leave(comm):
    x = np.full(100_000, float(comm.rank))
    comm.broadcast(x, root=0)
    if comm.rank == 0:
        comm.close()
        os._exit(0)
    return x[0]


def test_messages_sent_before_a_rank_closed_arrive():
    outcomes = outcomes_of(broadcast_and_leave, 3, patience_s=SOON_S)
    assert [outcome.value for outcome in outcomes[1:]] == [0.0, 0.0]


def interrupt_or_wait(comm):
    if comm.rank == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        comm.recv(np.ones(4), src=1)
    comm.all_reduce(np.ones(4))


def test_ctrl_c_ends_a_call_and_tells_the_others():
    errors = errors_of(interrupt_or_wait, 2)
    assert isinstance(errors[0], KeyboardInterrupt)
    assert isinstance(errors[1], Aborted)


# ---- exhausted resources ------------------------------------------------------------------------------------------


def limited(limits):
    def run(comm):
        comm.all_reduce(np.ones(1000))

    def preexec():
        for what, value in limits:
            resource.setrlimit(what, (value, value))

    from unisono.launch import spawn as local_ranks

    original = local_ranks._run_rank

    def limited_rank(*args):
        preexec()
        original(*args)

    local_ranks._run_rank = limited_rank
    try:
        return errors_of(run, 2)
    finally:
        local_ranks._run_rank = original


def test_too_little_memory_is_reported_at_the_start():
    first, second = limited([(resource.RLIMIT_FSIZE, 64 * 1024)])
    assert isinstance(first, UsageError), first
    assert "connect: no shared memory of" in str(first)
    assert "smaller staging_bytes" in str(first)
    assert isinstance(second, CommError), second
    assert str(second) == f"connect: rank 0 failed: {first}"
    assert second.rank == 0


def test_too_little_address_space_is_reported_at_the_start():
    def needed(comm):
        return int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024

    without_memory = unisono.spawn(needed, 1)[0]  # of a rank that shares memory with no other rank
    for error in limited([(resource.RLIMIT_AS, without_memory)]):
        assert isinstance(error, CommError), error
        assert "address space" in str(error)


def wait_for_the_late(comm):
    comm.barrier()
    if comm.rank == 1:
        time.sleep(1.5)
    before = time.process_time()
    comm.barrier()
    return time.process_time() - before


def test_a_long_wait_does_not_keep_a_core_busy():
    for spent_s in unisono.spawn(wait_for_the_late, 2):
        assert spent_s < 0.5
