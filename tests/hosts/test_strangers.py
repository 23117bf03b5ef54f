"""Processes that do not belong to a job: garbage, silence and wrong tokens at its ports; and other jobs beside it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from host_calls import courier_port, sum_of_ones
from host_jobs import HostJob, run_command
from unisono.bootstrap.network_handshake import ANSWER, REFUSED, make_greeting

pytestmark = pytest.mark.long

# A stranger on a test host: connects to an address many times, and sends garbage, or one byte now and then.
STRANGER = """
import os, select, socket, sys, time
address, port, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
open_, made, closed = [], 0, 0
print("begins", flush=True)
while not select.select([0], [], [], 0)[0]:  # until the test closes the standard input
    try:
        sock = socket.create_connection((address, port), timeout=2)
    except OSError:
        time.sleep(0.01)
        continue
    made += 1
    try:
        if kind == "garbage":
            sock.sendall(os.urandom(5000))
            sock.close()
        else:
            sock.send(b"u")
            open_.append(sock)
            time.sleep(0.005)
    except OSError:
        closed += 1
print(made)
"""
PROGRAM = """
import numpy as np, os, sys, time, unisono
if os.environ["UNISONO_RANK"] != "0":
    time.sleep(float(sys.argv[1]))  # rank 0 waits
with unisono.connect(connect_timeout=40) as comm:
    x = np.ones(1000)
    comm.all_reduce(x)
    print(int(x[0]), flush=True)
"""


def start_stranger(host, address, port, kind):
    words = [sys.executable, "-c", STRANGER, address, str(port), kind]
    return subprocess.Popen(host.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("kind", ["garbage", "slow"])
def test_strangers_at_the_port_of_a_courier_do_not_disturb_the_job(hosts, kind):
    with HostJob(hosts, "ab") as job:
        ports = job.call(courier_port)
        before_s = max(job.call(sum_of_ones, [1000] * 2, [200] * 2))
        strangers = [
            start_stranger(hosts["c"], hosts[name].address, port, kind)
            for name, port in zip("ab", ports, strict=True)
        ]
        for stranger in strangers:
            assert stranger.stdout.readline() == "begins\n"
        time.sleep(1.0)
        during_s = max(job.call(sum_of_ones, [1000] * 2, [200] * 2))
        made = [int(stranger.communicate(timeout=60)[0]) for stranger in strangers]
        print(f"MEASURED {kind} strangers at couriers: {made}; {before_s:.3f} s before, {during_s:.3f} s during")
        assert min(made) > 20
        job.call(sum_of_ones, [300_000] * 2, [5] * 2)
        assert job.close() == (0, "", "")


@pytest.mark.parametrize("kind", ["garbage", "slow"])
def test_strangers_at_the_port_of_the_rendezvous_do_not_keep_ranks_out(hosts, kind):
    port = 23_456
    stranger = start_stranger(hosts["c"], hosts["a"].address, port, kind)
    try:
        assert stranger.stdout.readline() == "begins\n"
        options = ["--rendezvous", f"a:{port}", "--no-prefix"]
        began_s = time.monotonic()
        done = subprocess.run(
            run_command(hosts, "aab", sys.executable, "-c", PROGRAM, "2", options=options),
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        took_s = time.monotonic() - began_s
        assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["3", "3", "3"], "")
        made = int(stranger.communicate(timeout=60)[0])
        print(f"MEASURED {kind} strangers at the rendezvous: {made} connections; the job took {took_s:.1f} s")
        assert made > 20
    finally:
        stranger.kill()
        stranger.communicate()


WITH_TOKEN = """
import os, sys, unisono
if os.environ["UNISONO_RANK"] == sys.argv[1]:
    os.environ["UNISONO_TOKEN"] = "another token, 16 or more characters"
try:
    unisono.connect(connect_timeout=6)
except unisono.UnisonoError as error:
    print(os.environ["UNISONO_RANK"], type(error).__name__, error, flush=True)
"""


def test_a_rank_with_another_token_is_refused_and_both_sides_say_so(hosts):
    done = subprocess.run(
        run_command(hosts, "ab", sys.executable, "-c", WITH_TOKEN, "1", options=["--no-prefix"]),
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    first, second = sorted(done.stdout.splitlines())
    assert first.startswith("0 CollectiveTimeout")
    assert "its token differs" in first
    assert second.startswith("1 UsageError")
    assert "token" in second


def test_a_stranger_without_the_token_gets_an_answer_to_its_greeting_and_nothing_else(hosts):
    greeting = make_greeting(1, 2, "").hex()
    code = (
        "import socket, sys\n"
        "sock = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)\n"
        "sock.sendall(bytes.fromhex(sys.argv[3]) + bytes(200))\n"
        "got = b''\n"
        "try:\n"
        "    while part := sock.recv(100): got += part\n"
        "except OSError: pass\n"
        "print(got.hex())\n"
    )
    port = 23_457
    job = subprocess.Popen(
        run_command(hosts, "ab", sys.executable, "-c", PROGRAM, "3", options=["--rendezvous", f"a:{port}"]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    got = ""
    while not got and job.poll() is None:
        got = hosts["c"].run(sys.executable, "-c", code, hosts["a"].address, str(port), greeting).stdout
    output, errors = job.communicate(timeout=60)
    assert (job.returncode, errors) == (0, ""), output
    answer = bytes.fromhex(got)
    assert answer[ANSWER.size :] in (b"", REFUSED)


def test_two_jobs_at_once_on_the_same_hosts_do_not_disturb_each_other(hosts):
    with HostJob(hosts, "aab") as one, HostJob(hosts, "abb") as two:
        for job in (one, two):
            job.start_all(sum_of_ones, 100_000, 20)
        for job in (one, two):
            assert [job.answer(rank).kind for rank in range(3)] == ["value"] * 3
        one.signal(2, "KILL")
        two.call(sum_of_ones, [100_000] * 3, [20] * 3)
        assert two.close() == (0, "", "")
        one.close()
