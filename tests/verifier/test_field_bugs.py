"""Bugs that real programs in this field have had, rewritten, and the errors that the verifier raises."""

from __future__ import annotations

import pytest

from builders import xor_exchange
from unisono import algorithm, one, one_per_rank, prove, recv, recv_reduce, send
from unisono.algorithms.arithmetic import powers_of_two_below
from unisono.collectives import all_gather, all_reduce, broadcast
from unisono.errors import DeadlockError, GoalError, HazardError, ScheduleError, UnmatchedError


@algorithm(all_gather, chunks=one_per_rank)
def unmirrored_all_gather(rank, size):
    """A bidirectional ring whose second direction forwards the chunks of the first."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(size // 2):
        yield (
            send((rank - hop) % size, dst=right), recv((rank - hop - 1) % size, src=left),
            send((rank - hop) % size, dst=left), recv((rank - hop + 1) % size, src=right),
        )  # fmt: skip


@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_an_all_gather_whose_second_direction_is_not_mirrored_is_rejected(size):
    with pytest.raises(ScheduleError) as caught:
        prove(unmirrored_all_gather.schedule(size))
    assert isinstance(caught.value, UnmatchedError | HazardError | GoalError)
    assert caught.value.rank is not None


@algorithm(all_reduce, chunks=one)
def xor_butterfly(rank, size):
    """Partners differ in one bit: correct only for powers of two, which is not declared."""
    yield from xor_exchange(rank, size)


def test_an_xor_butterfly_at_size_48_is_rejected():
    prove(xor_butterfly.schedule(32))
    with pytest.raises(ScheduleError, match="there is no rank 48") as caught:
        prove(xor_butterfly.schedule(48))
    assert (caught.value.rank, caught.value.step) == (16, 5)


@algorithm(all_reduce, chunks=one)
def clipped_butterfly(rank, size):
    """The same with missing partners skipped: it runs, but the sums are incomplete."""
    for distance in powers_of_two_below(size):
        if rank ^ distance < size:
            yield send(0, dst=rank ^ distance), recv_reduce(0, src=rank ^ distance)


def test_an_xor_butterfly_that_skips_missing_partners_is_rejected():
    with pytest.raises(GoalError, match="does not hold the result") as caught:
        prove(clipped_butterfly.schedule(48))
    assert "missing" in caught.value.found


@algorithm(broadcast, chunks=one_per_rank)
def oversized_broadcast(rank, size, root=0):
    """Scatter, then all-gather; the receives ignore that the last subtree may be smaller."""
    me = (rank - root) % size
    for span in reversed(powers_of_two_below(size)):
        if me % (2 * span) == 0 and me + span < size:
            yield send(range(me + span, min(me + 2 * span, size)), dst=(rank + span) % size)
        elif me % (2 * span) == span:
            yield recv([block % size for block in range(me, me + span)], src=(rank - span) % size)
    for hop in range(size - 1):
        yield send((rank - hop) % size, dst=(rank + 1) % size), recv((rank - hop - 1) % size, src=(rank - 1) % size)


def test_a_broadcast_with_wrong_receive_sizes_is_rejected_off_powers_of_two():
    prove(oversized_broadcast.schedule(8))
    with pytest.raises(UnmatchedError, match="a different number of chunks") as caught:
        prove(oversized_broadcast.schedule(6))
    assert (caught.value.rank, caught.value.step) == (4, 0)
    assert caught.value.expected.startswith("4 ")
    assert caught.value.found.startswith("2 ")


@algorithm(all_reduce, chunks=one, scratch=one_per_rank)
def whole_tensor_ring(rank, size):
    """A "ring" in which every rank's whole tensor travels all the way around."""
    right, left = (rank + 1) % size, (rank - 1) % size
    from unisono import combine, copy

    yield copy(0, to=1 + rank)
    for hop in range(size - 1):
        yield send(1 + (rank - hop) % size, dst=right), recv(1 + (rank - hop - 1) % size, src=left)
    for peer in range(1, size):
        yield combine(1 + peer, into=1)
    yield copy(1, to=0)


def test_a_ring_that_moves_whole_tensors_is_accepted_with_a_remark():
    proof = prove(whole_tensor_ring.schedule(16))
    assert proof.sent == 15
    assert proof.bandwidth_ratio == 8
    assert any("far from the bandwidth bound" in remark and "8.0 times" in remark for remark in proof.remarks)


@algorithm(all_reduce, chunks=one_per_rank)
def send_before_receive(rank, size):
    """Every rank sends all chunks before it receives any: correct only if another process buffers the messages."""
    right, left = (rank + 1) % size, (rank - 1) % size
    if size == 2:
        yield send(0, dst=right)
        yield send(1, dst=right)
        yield recv_reduce(0, src=left)
        yield recv_reduce(1, src=left)


def test_a_cycle_of_sends_before_receives_deadlocks_at_depth_1_only():
    schedule = send_before_receive.schedule(2)
    with pytest.raises(DeadlockError, match="channels of depth 2 avoid this") as caught:
        prove(schedule, depth=1)
    assert str(caught.value.op).startswith("send 1")
    prove(schedule, depth=2)
    prove(schedule, depth=None)
