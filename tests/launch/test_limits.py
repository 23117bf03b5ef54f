"""The number of ranks is limited, signals are handled while ranks are starting, and many ranks start in seconds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import unisono
from launching import LIMIT_S, is_alive, job, wait_until
from unisono.cli.main import main
from unisono.errors import UsageError
from unisono.launch import messages
from unisono.launch.limits import RANKS_PER_CORE, most_ranks

pytestmark = pytest.mark.slow

MANY = 150


@pytest.mark.parametrize("size", [most_ranks() + 1, 100_000])
def test_more_ranks_than_the_limit_are_rejected_with_the_option_that_lifts_it(size, capsys):
    assert main(["run", "-n", str(size), "true"]) == 2
    output = capsys.readouterr().err
    cores = len(os.sched_getaffinity(0))
    assert f"{size} ranks on {cores} cores; expected at most {RANKS_PER_CORE * cores}" in output
    assert "--oversubscribe" in output
    with pytest.raises(UsageError, match="oversubscribe=True") as caught:
        unisono.spawn(print, size)
    assert caught.value.id == messages.TOO_MANY_RANKS.id


def test_oversubscribe_lifts_the_limit(monkeypatch):
    monkeypatch.setattr("unisono.launch.limits.RANKS_PER_CORE", 1)
    size = most_ranks() + 1
    assert main(["run", "-n", str(size), "true"]) == 2
    assert main(["run", "-n", str(size), "--oversubscribe", "true"]) == 0
    assert unisono.spawn(lambda comm: comm.rank, size, oversubscribe=True) == list(range(size))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_ranks_are_starting_ends_the_job_at_once(tmp_path, number):
    with job(tmp_path, "echo pid $$; exec sleep 100", MANY) as started:
        wait_until(lambda: len(started.pids()) >= 3)
        began_s = time.monotonic()
        started.send(number)
        assert started.code() == 128 + number
        seconds = time.monotonic() - began_s
        assert not any(is_alive(pid) for pid in started.pids())
        assert len(started.pids()) < MANY, "all ranks were started although a signal had arrived"
    assert seconds < LIMIT_S / 2


def test_output_is_shown_while_ranks_are_starting(tmp_path):
    with job(tmp_path, "echo pid $$; exec sleep 100", MANY) as started:
        wait_until(lambda: len(started.pids()) >= 1)
        assert len(started.pids()) < MANY


def test_no_more_ranks_are_started_once_one_has_failed(tmp_path):
    with job(tmp_path, "echo pid $$; [ $UNISONO_RANK != 2 ] || exit 7; exec sleep 100", MANY) as started:
        assert started.code() == 7
        assert len(started.pids()) < MANY


ALL_REDUCE = """
import numpy as np, unisono
with unisono.connect() as comm:
    x = np.ones(4)
    comm.all_reduce(x)
    print(x[0], flush=True)
"""


def all_reduce(comm):
    x = np.ones(4)
    comm.all_reduce(x)
    return x[0]


@pytest.mark.parametrize("size", [16, pytest.param(64, marks=pytest.mark.long)])
def test_many_ranks_start_and_communicate(size):
    """The time depends on the machine: docs/adr/0031 has measurements."""
    command = [sys.executable, "-m", "unisono", "run", "-n", str(size), sys.executable, "-c", ALL_REDUCE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == sorted(f"[{rank}] {size}.0" for rank in range(size))
    assert unisono.spawn(all_reduce, size) == [float(size)] * size


SPAWNS = """
import os, sys, time, unisono
import unisono.launch.spawn as spawn_module

def announce():
    os.write(1, f"pid {os.getpid()}\\n".encode())  # one call: the output of two ranks is not mixed

def wait(comm):
    announce()
    time.sleep(100)

def never_connect(*args, **kwargs):
    announce()
    time.sleep(100)

if sys.argv[1] == "not connected":
    spawn_module.connect_link = never_connect
unisono.spawn(wait, int(sys.argv[2]), oversubscribe=True)
"""


class Spawned:
    """A process that calls ``spawn()``."""

    def __init__(self, folder, when, size):
        self.output = folder / "output"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SPAWNS, when, str(size)], stdout=file, stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(folder / "tmp")}, process_group=0,
            )  # fmt: skip

    def pids(self):
        return [int(pid) for pid in re.findall(r"pid (\d+)\n", self.output.read_text())]


@pytest.fixture
def spawned(tmp_path):
    """Return a function that starts a process with ``spawn()``; afterwards no file and no process is left."""
    (tmp_path / "tmp").mkdir()
    started = []

    def start(when, size=2):
        started.append(Spawned(tmp_path, when, size))
        return started[0]

    yield start
    started[0].process.kill()
    started[0].process.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in started[0].pids()))
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("when", ["connected", "not connected"])
def test_no_rank_of_spawn_outlives_its_process(tmp_path, spawned, number, when):
    running = spawned(when)
    wait_until(lambda: len(running.pids()) == 2 or running.process.poll() is not None)
    assert len(running.pids()) == 2, running.output.read_text()
    assert list((tmp_path / "tmp").iterdir()) == [], "a file could be left behind"
    running.process.send_signal(number)
    running.process.wait(LIMIT_S)
    wait_until(lambda: not any(is_alive(pid) for pid in running.pids()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_spawn_is_starting_ranks_ends_it_at_once(spawned, number):
    running = spawned("not connected", MANY)
    wait_until(lambda: len(running.pids()) >= 3)
    os.killpg(running.process.pid, number)  # as the terminal does
    assert running.process.wait(LIMIT_S) == -number
    wait_until(lambda: not any(is_alive(pid) for pid in running.pids()))
    assert len(running.pids()) < MANY
    assert running.output.read_text().count("Traceback") == (number == signal.SIGINT), running.output.read_text()
