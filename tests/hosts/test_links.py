"""Links that are slow or lose packets, and a host that is slow: the calls take longer, and are right."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from host_calls import sum_of_ones, wait_in_barrier
from host_jobs import HostJob, run_command
from test_hosts import TestHosts
from tests.comm.test_hosts import make_chosen_calls, other_calls

pytestmark = pytest.mark.long


def test_calls_are_right_where_every_hundredth_packet_is_lost(hosts):
    hosts["b"].lose(1)
    with HostJob(hosts, "aabb") as job:
        assert job.call(make_chosen_calls) == [[]] * 4
        seconds = max(job.call(sum_of_ones, [1_000_000] * 4, [5] * 4))
        print(f"MEASURED 1 % loss: 4 MB in {seconds / 5:.3f} s")
        assert job.close() == (0, "", "")


def test_a_connection_whose_first_packets_are_lost_is_made(hosts):
    """The kernel sends the first packet of a connection again after 1 s and after 3 s; only then does it arrive."""
    with HostJob(hosts, "ab") as job:
        hosts["b"].cut()
        ranks = job.start_all(wait_in_barrier)
        time.sleep(2.2)
        hosts["b"].heal()
        assert [job.answer(rank)[:2] for rank in ranks] == [("value", None)] * 2
        assert job.close() == (0, "", "")


def test_a_slow_link_delays_calls_and_is_no_fault():
    with TestHosts(2, rate="20mbit") as hosts, HostJob(hosts, "aab") as job:
        assert job.call(other_calls) == [[]] * 3
        seconds = max(job.call(sum_of_ones, [2_500_000] * 3, [1] * 3))
        print(f"MEASURED 20 Mbit/s: 10 MB in {seconds:.2f} s; the bound is 4.0 s")
        assert seconds > 3.5
        assert job.close() == (0, "", "")


def test_a_slow_host_delays_calls_and_is_no_fault(hosts):
    """The rank of host b is stopped most of the time."""
    with HostJob(hosts, "ab") as job:
        ranks = job.start_all(sum_of_ones, 200_000, 50)
        for _ in range(4):
            job.signal(1, "STOP")
            time.sleep(0.7)
            job.signal(1, "CONT")
            time.sleep(0.1)
        assert [job.answer(rank).kind for rank in ranks] == ["value"] * 2
        assert job.close() == (0, "", "")


def test_calls_are_right_with_a_delay():
    with TestHosts(2, delay_ms=5) as hosts, HostJob(hosts, "aab") as job:
        assert job.call(other_calls) == [[]] * 3
        seconds = max(job.call(sum_of_ones, [1] * 3, [10] * 3))
        assert seconds >= 10 * 0.005


def test_hosts_are_reached_by_their_ipv6_addresses(hosts):
    program = "import unisono\nwith unisono.connect() as comm: comm.barrier(); print(comm.size)"
    names = ",".join(f"[{hosts[name].address_6}]" for name in "ab")
    command = run_command(hosts, "ab", sys.executable, "-c", program, options=["--no-prefix"])
    command[command.index("--hosts") + 1] = names
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["2", "2"], "")
