"""What the system refuses is said with a rank and advice: threads, memory, and more ranks than make sense."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import unisono
from launching import LIMIT_S, is_alive, job, wait_until
from unisono.cli.main import main
from unisono.errors import CommError, UsageError
from unisono.launch.run import MOST_RANKS
from unisono.launch.spawn import outcomes_of

pytestmark = pytest.mark.slow


def address_space_bytes():
    return int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def start_no_thread(comm, how):
    x = np.ones(4)
    comm.all_reduce(x)
    comm.barrier()
    if comm.rank == 1:
        resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes() + 4_000_000,) * 2)
    if how == "collective":
        comm.all_reduce(x, async_op=True).wait()
    elif how == "send" and comm.rank == 1:
        comm.send(x, 0, async_op=True).wait()
    elif how == "recv" and comm.rank == 1:
        comm.recv(x, 0, async_op=True).wait()
    comm.barrier()


@pytest.mark.parametrize("how", ["collective", "send", "recv"])
def test_a_rank_that_can_start_no_thread_says_so_to_all(how):
    outcomes = outcomes_of(start_no_thread, 2, how, timeout=30, patience_s=10.0, start="spawn")
    for outcome in outcomes:
        assert type(outcome.error) is CommError, outcome.story
        assert outcome.error.rank == 1
        text = str(outcome.error)
        assert text.startswith("rank 1 could not start a thread for calls in the background: Resource temporarily")
        assert "ulimit -u" in text


def split_without_memory(comm):
    comm.barrier()
    if comm.rank == 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    comm.split(0 if comm.rank == 2 else None)


def test_a_rank_that_gets_no_shared_memory_for_a_part_says_which_it_is_and_what_to_do():
    error = outcomes_of(split_without_memory, 3, timeout=30, patience_s=10.0)[2].error
    assert type(error) is CommError
    assert error.rank == 2
    text = str(error)
    said = r"rank 2 of the job \(rank 0 of its group\): no shared memory for \d+ bytes: File too large; "
    assert re.match(said, text), text
    assert "staging_bytes" in text
    assert "ulimit -f" in text


def call_without_memory(comm):
    part = comm.split(0)
    part.barrier()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    if comm.rank == 0:  # the memory of a channel is made when somebody first sends through it
        part.send(np.ones(1 << 20), 1)
    else:
        part.recv(np.ones(1 << 20), 0)


def test_the_advice_names_an_argument_that_exists():
    for outcome in outcomes_of(call_without_memory, 2, timeout=30, patience_s=10.0):
        assert type(outcome.error) is CommError, outcome.story
        assert re.match(r"rank [01]: no shared memory for \d+ bytes: File too large; ", str(outcome.error))
        assert "connect with smaller staging_bytes" in str(outcome.error)


def test_more_ranks_than_make_sense_are_refused(capsys):
    for size in (MOST_RANKS + 1, 100_000):
        assert main(["run", "-n", str(size), "true"]) == 2
        assert f"{size} ranks; expected 1 to {MOST_RANKS}" in capsys.readouterr().err
        with pytest.raises(UsageError, match=f"expected a number of ranks, 1 to {MOST_RANKS}"):
            unisono.spawn(print, size)


MANY = 150


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_while_ranks_are_started_ends_the_job_soon(tmp_path, number):
    with job(tmp_path, "echo pid $$; exec sleep 100", MANY) as started:
        wait_until(lambda: len(started.pids()) >= 3)
        began = time.monotonic()
        started.send(number)
        code = started.code()
        seen = len(started.pids())
        assert code == 128 + number
        assert not any(is_alive(pid) for pid in started.pids())
    assert seen < MANY, "all ranks were started although a signal had come"
    assert time.monotonic() - began < LIMIT_S


def test_no_more_ranks_are_started_when_one_has_failed(tmp_path):
    with job(tmp_path, "echo pid $$; [ $UNISONO_RANK != 2 ] || exit 7; exec sleep 100", MANY) as started:
        assert started.code() == 7
        assert len(started.pids()) < MANY


SPAWNS = """
import os, time, unisono
def wait(comm, when):
    if when == "connected" or comm.rank == 0:
        print("pid", os.getpid(), flush=True)
    time.sleep(100)
if "{when}" == "connected":
    unisono.spawn(wait, 2, "{when}", start="{start}")
else:
    import unisono.launch.spawn as local_ranks
    def late(*args, **kwargs):
        print("pid", os.getpid(), flush=True)
        time.sleep(100)
    local_ranks.connect_link = late
    unisono.spawn(wait, 2, "{when}")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(("when", "start"), [("connected", "fork"), ("not connected", "fork")])
def test_nothing_is_left_of_spawn_when_its_process_is_killed(tmp_path, number, when, start):
    output = tmp_path / "output"
    folder = tmp_path / "tmp"
    folder.mkdir()
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", SPAWNS.format(when=when, start=start)], stdout=file, stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
    pids = lambda: [int(word) for word in re.findall(r"pid (\d+)\n", output.read_text())]  # noqa: E731
    try:
        wait_until(lambda: len(pids()) == 2 or process.poll() is not None)
        assert len(pids()) == 2, output.read_text()
        assert list(folder.iterdir()) == [], "a file could be left behind"
        process.send_signal(number)
        process.wait(LIMIT_S)
        wait_until(lambda: not any(is_alive(pid) for pid in pids()))
        assert list(folder.iterdir()) == []
    finally:
        process.kill()
        process.wait()
