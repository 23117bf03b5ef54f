"""An error that ends several ranks is printed once, with the ranks it occurred on, under every launcher."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys

import pytest

from launching import LIMIT_S, wait_until

pytestmark = pytest.mark.slow
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")

ALGORITHM = """
from unisono import algorithm, one_per_rank, recv_reduce, send
from unisono.collectives import all_reduce

@algorithm(all_reduce, chunks=one_per_rank)
def half_a_ring(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(1, size):
        yield send((rank - hop) % size, dst=right), recv_reduce((rank - hop - 1) % size, src=left)
"""
TRAIN = """
import sys, time
import numpy as np
import unisono
from algorithm_of_user import half_a_ring

def train(comm):
    x = np.ones(4)
    comm.all_reduce(x)
    how = sys.argv[1]
    if how == "wrong algorithm" or how == "on rank 1" and comm.rank == 1:
        comm.all_reduce(x, algorithm=half_a_ring)
    if how == "own error" and comm.rank == 1:
        raise KeyError("an error of the user")
    print("ready", flush=True)
    while True:
        comm.all_reduce(x)
        time.sleep(0.01)
"""
WITH = (
    TRAIN
    + """
with unisono.connect(timeout=30) as comm:
    train(comm)
"""
)
WITHOUT = (
    TRAIN
    + """
train(unisono.connect(timeout=30))
"""
)
SPAWN = (
    TRAIN
    + """
unisono.spawn(train, 3, timeout=30)
"""
)
TORCH = """
import sys, time
import torch
import torch.distributed as dist
from unisono.torch_backend import Options
from algorithm_of_user import half_a_ring

options = Options(algorithms={"all_reduce": half_a_ring}) if sys.argv[1] == "wrong algorithm" else None
dist.init_process_group("unisono", pg_options=options)

def train():
    x = torch.ones(4)
    dist.all_reduce(x)
    print("ready", flush=True)
    while True:
        dist.all_reduce(x)
        time.sleep(0.01)

train()
"""
LAUNCHERS = {
    "run": (["-m", "unisono", "run", "-n", "3"], WITH),
    "run without with": (["-m", "unisono", "run", "-n", "3"], WITHOUT),
    "spawn": ([], SPAWN),
    "torchrun": (["-m", "torch.distributed.run", "--nproc-per-node", "2"], TORCH),
}
SIZES = {"torchrun": 2}  # every rank imports torch, which takes seconds; 3 with the other launchers
EVERY_LAUNCHER = [pytest.param(name, marks=needs_torch if name == "torchrun" else ()) for name in LAUNCHERS]


class Started:
    """A job whose launcher runs in a separate process group, as a shell starts it."""

    def __init__(self, folder, launcher, how):
        words, program = LAUNCHERS[launcher]
        (folder / "algorithm_of_user.py").write_text(ALGORITHM)
        (folder / "train.py").write_text(program)
        self.output = folder / "output"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, *words, "train.py", how], stdout=file, stderr=file, cwd=folder, process_group=0
            )

    def text(self):
        return self.output.read_text()

    def finished(self):
        """Return the output, once the job has ended."""
        assert self.process.wait(2 * LIMIT_S) != 0
        return self.text()

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start(tmp_path):
    started = []

    def start(launcher, how):
        started.append(Started(tmp_path, launcher, how))
        return started[0]

    yield start
    started[0].end()


def of_ranks(text):
    """Return the output of the ranks: under torchrun, torch marks the output of an excepthook."""
    marked = [line for line in text.splitlines(keepends=True) if line.startswith("[rank")]
    return "".join(marked) or text


def own_frames(text):
    return re.findall(r'File "[^"]*/unisono/[^"]*", line \d+, in (?!spawn\b)\S+', text)


@pytest.mark.parametrize("launcher", EVERY_LAUNCHER)
def test_a_wrong_algorithm_is_one_error_that_names_the_ranks(start, launcher):
    text = of_ranks(start(launcher, "wrong algorithm").finished())
    assert text.count("GoalError") == 1, text
    assert text.count("expected:") == text.count("found:") == 1
    assert f"on all {SIZES.get(launcher, 3)} ranks:" in text
    assert ", in train" in text, "the frames of the user are missing"
    assert own_frames(text) == []


@pytest.mark.parametrize("launcher", ["run", "spawn"])
def test_an_error_of_one_rank_comes_first_and_the_others_are_named_after_it(start, launcher):
    text = start(launcher, "on rank 1").finished()
    assert text.count("GoalError: all_reduce/half_a_ring") + text.count("GoalError: half_a_ring") >= 1
    assert "rank 1 of 3:" in text
    assert own_frames(text) == []
    if launcher == "run":
        error, consequence = text.index("rank 1 of 3:"), text.index("ranks 0, 2 of 3: Aborted")
        assert error < consequence
        assert text.count("Traceback") == 1, text


def test_without_a_with_block_the_error_of_one_rank_is_printed_before_its_consequences(start):
    text = start("run without with", "on rank 1").finished()
    assert text.index("rank 1 of 3:") < text.index("ranks 0, 2 of 3:")
    assert text.count("Traceback") == 2, text


def test_an_error_of_the_user_keeps_its_traceback_and_the_other_ranks_are_folded(start):
    text = start("run", "own error").finished()
    assert text.count("[1] KeyError: 'an error of the user'\n") == 1
    assert text.count("ranks 0, 2 of 3:") == 1, text
    assert text.count("Traceback") == 2


@pytest.mark.parametrize("launcher", EVERY_LAUNCHER)
def test_an_interrupt_is_one_line(start, launcher):
    job = start(launcher, "forever")
    wait_until(lambda: job.text().count("ready") == SIZES.get(launcher, 3) or job.process.poll() is not None)
    os.killpg(job.process.pid, signal.SIGINT)  # as Ctrl-C in a terminal does
    text = of_ranks(job.finished())
    lines = [line for line in text.splitlines() if "ready" not in line and not re.match(r"W\d|\*+|\[W", line)]
    if launcher == "spawn":  # one KeyboardInterrupt, in the process that called it
        assert text.count("KeyboardInterrupt\n") == text.count("Traceback") == 1, text
    elif launcher == "torchrun":
        assert text.count("all 2 ranks: interrupted") == 1, text
        assert "KeyboardInterrupt" not in text
    else:
        assert lines == ["interrupted"], text


def test_a_program_with_an_excepthook_keeps_it(tmp_path):
    program = (
        "import sys, unisono\n"
        "sys.excepthook = hook = lambda *error: print('hook of the user', file=sys.stderr)\n"
        "unisono.connect()\n"
        "assert sys.excepthook is hook\n"
        "unisono.find('no_such_algorithm')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stderr) == (1, "hook of the user\n")


def test_a_single_process_prints_its_error_without_our_frames():
    program = "import unisono\ncomm = unisono.connect()\nunisono.find('no_such_algorithm')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 1
    assert done.stderr.startswith('Traceback (most recent call last):\n  File "<string>", line 3, in <module>\n')
    assert own_frames(done.stderr) == []
    assert "no_such_algorithm" in done.stderr
