"""Faults between test hosts: the survivors raise an error that names the rank and the host at fault, soon enough.

A process that dies is reported within 1 s, a host or a link within 6 s. A stopped process ends only the calls that
have a timeout.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import pytest

from host_calls import (
    differ,
    keep_calling,
    leave,
    make_part,
    receive,
    sleep_then_call,
    sum_of_ones,
    use_part,
    wait_in_barrier,
)
from host_jobs import HostJob, check_errors
from test_hosts import TestHosts
from unisono.bootstrap import ucx_search

PROCESS_S = 1.0
HOST_S = 6.0

long = pytest.mark.long
needs_ucx = pytest.mark.skipif(
    not ucx_search.packaged_libraries(), reason="SKIPPED, NOT TESTED: UCX (pip install libucx-cu12)"
)
TRANSPORTS = ("tcp", pytest.param("ucx", marks=[long, needs_ucx]))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("layout", ["aab", pytest.param("abc", marks=long), pytest.param("aaab", marks=long)])
def test_a_killed_rank_is_named_with_its_host_and_other_groups_go_on(hosts, layout, transport):
    with HostJob(hosts, layout, connect={"transport": transport}) as job:
        victim = job.size - 1
        others = list(range(victim))
        job.call(make_part, [others] * job.size)
        job.start_all(keep_calling)
        time.sleep(0.3)
        since_s = job.signal(victim, "KILL")
        location = f"rank {victim}", f"host {layout[-1]}"
        texts = check_errors(job, others, "PeerLost", since_s, PROCESS_S, *location, about=victim)
        assert len(set(texts)) == 1, "all ranks report the same cause"
        for rank in others:
            job.start(rank, use_part)
        assert [job.answer(rank)[:2] for rank in others] == [("value", float(victim))] * victim
        ended = job.close()
        assert ended.code == 137
        assert f"rank {victim} of {job.size} failed first" in ended.errors


@long
def test_a_rank_that_is_killed_between_calls_is_reported_by_the_next_call(hosts):
    """Rank 2 shares a host with rank 3, so it detects the end of the process; it reports the host to all."""
    with HostJob(hosts, "aabb") as job:
        ranks = job.start_all(sleep_then_call, 1.5, but=[3])
        job.start(3, wait_in_barrier)
        assert job.answer(3).kind == "value"
        since_s = job.signal(3, "KILL")
        check_errors(job, ranks, "PeerLost", since_s, 1.5 + PROCESS_S, "rank 3", "host b", about=3)
        job.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
@long
@pytest.mark.parametrize("waits", [True, False], ids=["receiver waits", "receiver comes later"])
def test_a_rank_with_which_there_was_no_connection_yet_is_reported(hosts, waits, transport):
    with HostJob(hosts, "ab", connect={"transport": transport}) as job:
        if waits:
            job.start(0, receive, 1)
            time.sleep(0.3)
        since_s = job.signal(1, "KILL")
        if not waits:
            time.sleep(0.3)
            job.start(0, receive, 1)
        check_errors(job, [0], "PeerLost", since_s, 0.3 + PROCESS_S, "rank 1", "host b", about=1)
        job.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("idle", [True, pytest.param(False, marks=long)], ids=["idle", "data flows"])
@pytest.mark.parametrize("way", ["cut", *(pytest.param(way, marks=long) for way in ("one way", "carrier"))])
def test_a_cut_link_is_reported_on_both_sides(hosts, way, idle, transport):
    with HostJob(hosts, "aab", connect={"transport": transport}) as job:
        if not idle:
            job.start_all(keep_calling, 1_000_000)
        else:
            job.call(wait_in_barrier)
            for rank in (0, 1):
                job.start(rank, wait_in_barrier)  # before rank 2 comes, its link is cut
        time.sleep(0.5)
        since_s = time.monotonic()
        match way:
            case "cut":
                hosts["b"].cut()
            case "one way":
                hosts["b"].cut_one_way()
            case "carrier":
                hosts["b"].carrier(up=False)
        if idle:
            job.start(2, sleep_then_call, 0.0)  # two calls: what the first one needs may have arrived before the cut
        check_errors(job, [0, 1], "PeerLost", since_s, HOST_S, "rank 2", "host b", about=2)
        check_errors(job, [2], "PeerLost", since_s, HOST_S, "host a")
        job.close()


@long
def test_a_link_that_is_cut_while_no_rank_is_in_a_call_is_reported_by_the_next_call_at_once(hosts):
    with HostJob(hosts, "aab") as job:
        job.call(wait_in_barrier)
        hosts["b"].cut()
        time.sleep(HOST_S)
        since_s = time.monotonic()
        job.start_all(sleep_then_call, 0.0)
        check_errors(job, [0, 1], "PeerLost", since_s, PROCESS_S, "rank 2", "host b", about=2)
        check_errors(job, [2], "PeerLost", since_s, PROCESS_S, "host a")
        job.close()


@long
def test_a_link_that_is_cut_before_the_first_connection_is_reported(hosts):
    with HostJob(hosts, "ab") as job:
        since_s = time.monotonic()
        hosts["b"].cut()
        job.start(0, receive, 1)
        job.start(1, receive, 0)
        check_errors(job, [0], "PeerLost", since_s, HOST_S, "rank 1", "host b", about=1)
        check_errors(job, [1], "PeerLost", since_s, HOST_S, "rank 0", "host a", about=0)
        job.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
@long
def test_a_cut_host_is_reported_to_ranks_that_do_not_talk_to_it_and_other_groups_go_on(hosts, transport):
    with HostJob(hosts, "abcd", connect={"transport": transport}) as job:
        job.call(make_part, [[0, 1, 2]] * 4)
        job.start_all(keep_calling, 1_000_000)
        time.sleep(0.5)
        since_s = time.monotonic()
        hosts["d"].cut()
        others = [0, 1, 2]
        check_errors(job, others, "PeerLost", since_s, HOST_S, "rank 3", "host d", about=3)
        check_errors(job, [3], "PeerLost", since_s, HOST_S, "host")
        for rank in others:
            job.start(rank, use_part)
        assert [job.answer(rank)[:2] for rank in others] == [("value", 3.0)] * 3
        job.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
@long
def test_a_short_cut_is_not_a_fault(hosts, transport):
    with HostJob(hosts, "ab", connect={"transport": transport}) as job:
        ranks = job.start_all(sum_of_ones, 300_000, 300)
        time.sleep(0.3)
        hosts["b"].cut()
        time.sleep(1.5)
        hosts["b"].heal()
        assert [job.answer(rank).kind for rank in ranks] == ["value", "value"]
        assert job.close().code == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
@long
def test_a_host_that_dies_is_named_and_the_job_ends(transport):
    """These hosts are used by no other test: one of them does not come back, and leaves its temporary files."""
    with TestHosts(2) as hosts, HostJob(hosts, "aabb", connect={"transport": transport}) as job:
        job.start_all(keep_calling, 100_000)
        time.sleep(0.5)
        since_s = time.monotonic()
        hosts["b"].kill()
        check_errors(job, [0, 1], "PeerLost", since_s, HOST_S, "host b")
        for rank in (0, 1):
            job.start(rank, leave, 3)
        ended = job.wait()
        assert ended.code == 3
        assert "rank 0 of 4 failed" in ended.errors or "rank 1 of 4 failed" in ended.errors
    (left,) = Path(tempfile.gettempdir()).glob("unisono-*")  # of the agent on host b
    shutil.rmtree(left)


@pytest.mark.parametrize("transport", TRANSPORTS)
@long
@pytest.mark.parametrize(("layout", "reason"), [("aabb", "rank 3"), ("aab", "rank 2 on host b does not answer")])
def test_a_stopped_rank_ends_calls_at_their_timeout_with_the_chain_across_hosts(hosts, layout, reason, transport):
    with HostJob(hosts, layout, connect={"timeout": 4, "transport": transport}) as job:
        stopped = job.size - 1
        others = list(range(stopped))
        job.call(wait_in_barrier)
        job.start_all(keep_calling, 50_000)
        time.sleep(0.3)
        since_s = job.signal(stopped, "STOP")
        try:
            limit_s = 4.0 + 1.0
            parts = "timed out after 4.0 s", reason
            texts = check_errors(job, others, "CollectiveTimeout", since_s, limit_s, *parts, about=stopped)
            assert len(set(texts)) == 1, "all ranks report the same cause"
        finally:
            job.signal(stopped, "CONT")
        check_errors(job, [stopped], "CollectiveTimeout", since_s, limit_s + 10.0)
        job.close()


@long
def test_ranks_on_different_hosts_that_make_different_calls_are_told_both(hosts):
    with HostJob(hosts, "aab") as job:
        since_s = time.monotonic()
        job.start_all(differ, 2)
        both = "all_reduce(16 float32, op=max", "all_reduce(16 float32, op=sum", "rank 2"
        check_errors(job, [0, 1, 2], "MismatchError", since_s, PROCESS_S, *both)
        job.close()
