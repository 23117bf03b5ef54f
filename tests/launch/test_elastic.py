"""``unisono run --elastic`` goes on without lost ranks, starts them again, and changes the size of the job."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from launching import LIMIT_S, is_alive, wait_until
from unisono.errors import UsageError
from unisono.launch.elastic import Elastic, parse_elastic

EXAMPLE = Path(__file__).parents[2] / "examples" / "elastic.py"
UNISONO = [sys.executable, "-m", "unisono"]
# Ranks call until a file exists, and admit others; each prints the size of its communicator when it changes.
PROGRAM = """
import os, sys, time
import numpy as np
import unisono
comm, known = unisono.connect(), 0
print("pid", os.getpid(), flush=True)
if "{fault}" == "always" and comm.job_ranks[comm.rank] == 1:
    sys.exit(7)
while True:
    try:
        ends = np.array([float(os.path.exists("{ends}"))])
        comm.all_reduce(ends)
        if comm.size != known:
            known = comm.size
            print("size", known, comm.job_ranks, flush=True)
        if ends[0]:
            break
        time.sleep(0.02)
        comm = comm.grow()
    except unisono.CommError:
        comm = comm.shrink(timeout=20.0)
comm.close()
"""


class Running:
    """A running elastic job."""

    def __init__(self, process, output: Path, ends: Path) -> None:
        self.process, self.output, self.ends = process, output, ends

    def printed(self) -> str:
        return self.output.read_text()

    def wait_for(self, pattern: str, times: int = 1) -> None:
        wait_until(lambda: len(re.findall(pattern, self.printed())) >= times or self.process.poll() is not None)
        assert len(re.findall(pattern, self.printed())) >= times, self.printed()

    @property
    def name(self) -> str:
        self.wait_for("this is job")
        return re.findall(r"this is job (\S+);", self.printed())[0]

    def pids(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"pid (\d+)\n", self.printed())]

    def resize(self, size: int) -> subprocess.CompletedProcess:
        words = [*UNISONO, "resize", self.name, str(size)]
        return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, env=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.output.parent)}


@contextmanager
def elastic_job(folder: Path, *options: str, fault: str = ""):
    """Run the program; afterwards, kill all processes that are left."""
    script, output, ends = folder / "program.py", folder / "output", folder / "ends"
    script.write_text(PROGRAM.format(fault=fault, ends=ends))
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*UNISONO, "run", *options, str(script)], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
    job = Running(process, output, ends)
    try:
        yield job
    finally:
        process.kill()
        process.wait()
        for pid in job.pids():
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_killed_rank_starts_again_and_joins(tmp_path):
    with elastic_job(tmp_path, "--elastic", "1:3") as job:
        job.wait_for(r"size 3 ", 3)
        os.kill(job.pids()[0], signal.SIGKILL)
        job.wait_for(r"size 2 ", 2)
        job.wait_for(r"size 3 ", 6)
        job.ends.touch()
        assert job.process.wait(LIMIT_S) == 0, job.printed()
        assert "it starts again in 0.5 s (1 of 3)" in job.printed()
        assert not any(is_alive(pid) for pid in job.pids())
    assert not list(tmp_path.glob("unisono-*"))


def test_a_rank_that_fails_again_and_again_is_given_up(tmp_path):
    with elastic_job(tmp_path, "--elastic", "1:2", "--restarts", "1", fault="always") as job:
        job.wait_for("after 1 restarts; the job goes on without it")
        job.wait_for(r"size 1 \(0,\)")
        job.ends.touch()
        assert job.process.wait(LIMIT_S) == 0, job.printed()


def test_a_job_with_too_few_ranks_fails_with_the_exit_code_of_the_lost_rank(tmp_path):
    with elastic_job(tmp_path, "--elastic", "2:2", fault="always") as job:
        assert job.process.wait(LIMIT_S) == 7, job.printed()
        assert "starts again" not in job.printed()


def test_a_running_job_changes_its_size(tmp_path):
    with elastic_job(tmp_path, "-n", "2", "--elastic", "1:5") as job:
        job.wait_for(r"size 2 ", 2)
        assert job.resize(5).returncode == 0
        job.wait_for(r"size 5 \(0, 1, 2, 3, 4\)|size 5 \(0, 1, ", 5)
        assert job.resize(1).returncode == 0
        job.wait_for(r"size 1 \(0,\)")
        refused = job.resize(6)
        assert refused.returncode == 2
        assert "size 6 for job" in refused.stderr
        assert "expected 1 to 5" in refused.stderr
        job.ends.touch()
        assert job.process.wait(LIMIT_S) == 0, job.printed()


def test_a_signal_ends_an_elastic_job_and_all_of_its_ranks(tmp_path):
    with elastic_job(tmp_path, "--elastic", "1:3") as job:
        job.wait_for(r"size 3 ", 3)
        job.process.send_signal(signal.SIGTERM)
        assert job.process.wait(LIMIT_S) == 128 + signal.SIGTERM
        assert not any(is_alive(pid) for pid in job.pids())
    assert not list(tmp_path.glob("unisono-*"))


def test_a_rank_that_waits_to_join_ends_when_the_others_have_ended_well(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import os, sys, time, unisono\n"
        "comm = unisono.connect()\n"
        "if comm.rank == 1: sys.exit(3)\n"
        "time.sleep(2.0)\n"  # it never calls grow
    )
    began_s = time.monotonic()
    done = subprocess.run(
        [*UNISONO, "run", "--elastic", "1:2", str(script)], capture_output=True, text=True, timeout=LIMIT_S,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "starts again" in done.stderr
    assert time.monotonic() - began_s < 30.0
    assert not list(tmp_path.glob("unisono-*"))


def test_the_example_finishes_all_of_its_steps_although_a_rank_fails(tmp_path):
    done = subprocess.run(
        [*UNISONO, "run", "--elastic", "1:4", str(EXAMPLE)], capture_output=True, text=True, timeout=LIMIT_S,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("PeerLost") >= 1
    assert done.stdout.count("ranks (0, 1, 3, 2): 200 steps") == 4, done.stdout


def test_limits_are_two_numbers():
    assert parse_elastic("2:8", 3) == Elastic(2, 8, 3)
    for text in ("8", "8:2", "0:3", "a:b", "2:8:9", ""):
        with pytest.raises(UsageError, match="expected the smallest and the largest"):
            parse_elastic(text, 3)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["run", "-n", "9", "--elastic", "1:4", "true"], "-n 9 with --elastic 1:4"),
        (["run", "--hosts", "a,b", "--elastic", "1:4", "true"], "--elastic with --hosts"),
        (["run", "--trace", "x", "--elastic", "1:4", "true"], "--elastic with --trace"),
        (["resize", "unisono-none", "2"], "there is no elastic job unisono-none"),
    ],
)
def test_wrong_uses_are_refused(words, complaint, tmp_path):
    done = subprocess.run(
        [*UNISONO, *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 2
    assert complaint in done.stderr
