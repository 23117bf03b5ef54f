"""Traces of ranks on several hosts, whose clocks differ by seconds and drift, are right within the round trips."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest

from paired_transfers import paired_transfers
from pretend_hosts import run_on_hosts
from stories import check_structure
from unisono.bootstrap.host_clock import FIRST_ANSWER_S, HostClock
from unisono.tracing import read_run, summary
from unisono.tracing.alignment import ROUND_TRIPS, RoundTrip
from unisono.tracing.critical_path import critical_path
from unisono.tracing.files import headers_in, parts_in
from unisono.tracing.joining import merge_traces
from unisono.tracing.matching import messages_of

HOSTS = ("a", "a", "b", "b")
AHEAD_S = {"a": 20_003.0, "b": 3.0}  # no clock shows a time before its start, however short this machine runs
DRIFTS = {"a": 0.0, "b": 0.004}  # seconds per second; that of real clocks is a hundredth of it
ROUNDING_NS = 1000


def on_clock(host, monotonic_ns, zero_ns):
    """Return the time that the clock of a pretended host shows; it runs since ``zero_ns``."""
    drifted = np.asarray(monotonic_ns).astype(np.int64) - zero_ns
    return zero_ns + drifted + (drifted * DRIFTS[host]).astype(np.int64) + int(AHEAD_S[host] * 1e9)


class PretendedClock(HostClock):
    """The clock of a pretended host."""

    def __init__(self, clock, host, zero_ns):
        super().__init__(clock.courier, clock.references)
        self.host, self.zero_ns = host, zero_ns
        self.trips = 0

    def identity(self):
        return {**super().identity(), "machine": f"the machine of {self.host}"}

    def times(self, monotonic_ns):
        return on_clock(self.host, monotonic_ns, self.zero_ns)

    def ask(self, rank, timeout_s):
        self.trips += 1
        trip = super().ask(rank, max(timeout_s, 20.0))  # a loaded machine may answer late
        assert trip is not None
        assert trip.asked_ns <= trip.read_ns <= trip.answered_ns
        there = on_clock(HOSTS[0], trip.read_ns, self.zero_ns)
        return RoundTrip(int(self.times(trip.asked_ns)), int(there), int(self.times(trip.answered_ns)))


def record(comm, folders, zero_ns):
    """Record some calls; return when the block began and ended, and the number of round trips."""
    link = comm.dispatcher.link
    clock = link.resources.clock = PretendedClock(link.resources.clock, HOSTS[comm.rank], zero_ns)
    folder = folders[HOSTS[comm.rank]]
    before_ns = time.monotonic_ns()
    with comm.trace(folder / "run.json"):
        entered_ns = time.monotonic_ns()
        for _ in range(3):
            comm.all_reduce(np.ones(50_000, np.float32), algorithm="ring")
            time.sleep(0.02)
        comm.broadcast(np.ones(1000, np.float32), root=3)
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        sent = comm.send(np.ones(100), right, tag=3, async_op=True)
        comm.recv(np.ones(100), left, tag=3)
        sent.wait()
        left_ns = time.monotonic_ns()
    return before_ns, entered_ns, left_ns, time.monotonic_ns(), clock.trips, comm.sent_bytes, comm.sent_far_bytes


def check_times(path, moments, zero_ns):
    """Check that the begin and the end of each recording are right, and that messages arrive after they were sent."""
    check_structure(path)
    for header in headers_in(path):
        before_ns, entered_ns, left_ns, after_ns = moments[header["rank"]][:4]
        most_ns = header["alignment"]["uncertainty_ns"] + ROUNDING_NS
        begins, ends = (before_ns, entered_ns), (left_ns, after_ns)
        for name, (first, last) in (("began_ns", begins), ("ended_ns", ends)):
            assert on_clock("a", first, zero_ns) - most_ns <= header[name] <= on_clock("a", last, zero_ns) + most_ns
    (group,) = read_run(path).communicators
    assert all((group.uncertainty_ns(0, rank) > 0) == (HOSTS[rank] == "b") for rank in range(4))
    assert group.uncertainty_ns(2, 3) == 0
    directions = set()
    for call in group.calls:
        for message in messages_of(call):
            limit_ns = group.uncertainty_ns(message.src, message.dst)
            assert message.received.end_ns + limit_ns + ROUNDING_NS * bool(limit_ns) > message.sent.begin_ns
            directions.add((HOSTS[message.src], HOSTS[message.dst]))
    assert directions == {("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")}
    pairs = paired_transfers(group.transfers)
    assert len(pairs) == 4
    for sent, received in pairs:
        assert received.end_ns + group.uncertainty_ns(sent.rank, received.rank) + ROUNDING_NS > sent.begin_ns
    return group


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_trace_of_several_hosts_has_one_clock(tmp_path, is_shared):
    """The hosts share a file system, or their parts are merged later."""
    folders = {"a": tmp_path, "b": tmp_path if is_shared else tmp_path / "b"}
    folders["b"].mkdir(exist_ok=True)
    zero_ns = time.monotonic_ns()
    moments = run_on_hosts(record, HOSTS, folders, zero_ns)
    assert [each[4] for each in moments] == [0, 0, 2 * ROUND_TRIPS, 2 * ROUND_TRIPS]
    path = tmp_path / "run.json"
    if not is_shared:
        parts = [folder / "run.json.parts" for folder in folders.values()]
        assert [len(parts_in(folder)) for folder in parts] == [2, 2]
        assert not path.exists()
        merge_traces(parts, path)
    group = check_times(path, moments, zero_ns)
    far = sum(each[6] for each in moments)
    assert group.sent_bytes() == (sum(each[5] for each in moments) - far, far)
    lines = summary(read_run(path))
    assert "on 2 hosts: a (ranks 0, 1), b (ranks 2, 3)\n" in lines
    assert "the clocks of the hosts differ from that of rank 0 by" in lines


def record_long_call(comm, path):
    x = np.ones(1_000_000, np.float32)
    comm.all_reduce(x, algorithm="ring")  # makes the plan
    with comm.trace(path):
        comm.all_reduce(x, algorithm="ring")


def test_passes_that_are_in_flight_at_a_time_are_recorded(tmp_path):
    path = tmp_path / "run.json"
    run_on_hosts(record_long_call, HOSTS, path)
    check_structure(path)
    (group,) = read_run(path).communicators
    (call,) = group.calls
    assert call.passes >= 4
    interleaved = 0
    for rank in call.ranks.values():
        assert rank.whole
        assert len(rank.ops) == call.passes * call.ops_in_pass[rank.rank]
        in_time = sorted(rank.ops, key=lambda op: op.end_ns)
        interleaved += any(later.number_of_pass < op.number_of_pass for op, later in pairwise(in_time))
    assert interleaved
    assert len(messages_of(call)) == 4 * 6 * call.passes
    path_of_call = critical_path(call)
    assert path_of_call[0].what == "begin"
    begins = [stretch.begin_ns for stretch in path_of_call]
    assert begins == sorted(begins)
    # All hosts have one clock here, so every wait for a message ends after the message was sent.
    assert all(message.received.end_ns > message.sent.begin_ns for message in messages_of(call))


def measure_after_rank_0_has_left(comm):
    """Return the offsets that a rank measures while rank 0 is there, and after it has closed its courier."""
    clock = comm.dispatcher.link.resources.clock
    offsets = [clock.measure()]
    comm.barrier()
    if comm.rank == 0:
        comm.close()
        return None
    ends_s, seconds = time.monotonic() + 60, math.inf
    while (offsets[-1] or seconds >= FIRST_ANSWER_S) and time.monotonic() < ends_s:  # its farewell may be on its way
        began_s = time.monotonic()
        offsets.append(clock.measure())
        seconds = time.monotonic() - began_s
    return offsets, seconds


def test_a_rank_does_not_wait_for_the_clock_of_one_that_has_ended():
    offsets, seconds = run_on_hosts(measure_after_rank_0_has_left, ("a", "b"))[1]
    assert offsets[0]
    assert offsets[-1] == []
    assert seconds < FIRST_ANSWER_S
