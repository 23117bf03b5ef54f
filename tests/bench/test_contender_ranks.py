"""Contenders as real processes: their answers, their failures, and their cleanup."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.fakes import HELLO, WELL, ScriptGroup
from unisono.bench import contender_ranks
from unisono.bench.cases import Case
from unisono.bench.contender import CaseUnsupported, ContenderFailed, TrialOptions
from unisono.bench.local_ranks import memory_ranks
from unisono.collectives import all_reduce

pytestmark = pytest.mark.slow

CASE = Case(all_reduce, 256, "float32")
OPTIONS = TrialOptions(iterations=4, warmup=1, check=True)
PATIENCE_S = 20
TESTS = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _private_folder(tmp_path, monkeypatch):
    """Put temporary files where the test can find leftovers; the path is short because socket names are limited."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def processes_of(folder):
    """Return the processes that have a folder in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in command and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def soon(condition):
    """Wait until a condition holds; return false if it does not in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def started(script, **options):
    group = ScriptGroup(script, **options)
    group.start()
    group.wait_until_ready()
    return group


def nothing_left(folder):
    return not processes_of(folder) and not folder.exists()


def test_every_rank_receives_the_command_and_answers():
    group = started(WELL, size=3)
    try:
        trial = group.measure(CASE, OPTIONS)
        assert trial.seconds == [[1e-6] * 4, [2e-6] * 4, [3e-6] * 4]
        assert trial.mean_s == 5e-6
        assert trial.wrong == 0 + 1 + 2
        assert group.version == "made up"
        assert group.measure(CASE, OPTIONS) == trial
    finally:
        group.close()
    assert nothing_left(group.folder)
    group.close()  # closing twice is harmless


def test_a_rank_that_cannot_start_is_reported_with_its_last_output():
    group = ScriptGroup("import sys\nif sys.argv[1] == '1': sys.exit('there is no such library')" + WELL)
    group.start()
    try:
        noticed = "exited with code 1|closed its connection"
        with pytest.raises(ContenderFailed, match=rf"({noticed})(.|\n)*there is no such library"):
            group.wait_until_ready()
    finally:
        group.close()
    assert nothing_left(group.folder)


def test_a_program_that_does_not_exist_is_reported():
    group = ScriptGroup(WELL)
    group.commands = lambda folder, ranks: [contender_ranks.Command(["no-such-mpiexec"], {})]
    group.start()
    try:
        with pytest.raises(ContenderFailed, match="no-such-mpiexec"):
            group.wait_until_ready()
    finally:
        group.close()


def test_ranks_of_different_jobs_are_rejected():
    """As with an mpi4py that was built for another MPI: every process assumes that it is alone."""
    group = ScriptGroup(HELLO + "rank, size = 0, 1\nhello()\nobey()")
    group.start()
    try:
        with pytest.raises(ContenderFailed, match="rank 0 of 1 connected; expected each rank of 2 once"):
            group.wait_until_ready()
    finally:
        group.close()
    assert nothing_left(group.folder)


def test_ranks_that_do_not_connect_are_reported_after_a_timeout(monkeypatch):
    monkeypatch.setattr(contender_ranks, "START_TIMEOUT_S", 0.5)
    group = ScriptGroup("import time; time.sleep(1000)")
    group.start()
    try:
        with pytest.raises(ContenderFailed, match="only 0 of 2 ranks connected"):
            group.wait_until_ready()
    finally:
        group.close()
    assert nothing_left(group.folder)


def test_a_rank_that_hangs_is_named():
    group = started(HELLO + "hello()\nif rank == 1: time.sleep(1000)\nobey()", answer_timeout_s=0.5)
    try:
        with pytest.raises(ContenderFailed, match="rank 1 did not answer in time"):
            group.measure(CASE, OPTIONS)
    finally:
        group.close()
    assert nothing_left(group.folder)


def test_a_rank_that_dies_is_named():
    group = started(HELLO + "hello()\nlines.readline()\nif rank == 1: os.kill(os.getpid(), 9)\ntime.sleep(1000)")
    try:
        with pytest.raises(ContenderFailed, match="rank 1 closed its connection"):
            group.measure(CASE, OPTIONS)
    finally:
        group.close()
    assert nothing_left(group.folder)


def test_a_case_that_all_ranks_refuse_is_unsupported_and_the_ranks_continue():
    script = HELLO + "hello()\nlines.readline()\nsay(unsupported='no bfloat16')\nobey()"
    group = started(script)
    try:
        with pytest.raises(CaseUnsupported, match="no bfloat16"):
            group.measure(CASE, OPTIONS)
        assert group.measure(CASE, OPTIONS).seconds
    finally:
        group.close()


def test_an_error_of_one_rank_is_reported_while_the_others_wait_for_it(monkeypatch):
    monkeypatch.setattr(contender_ranks, "ERROR_GRACE_S", 0.2)
    group = started(HELLO + "hello()\nlines.readline()\nif rank == 0: say(error='out of memory')\ntime.sleep(1000)")
    try:
        with pytest.raises(ContenderFailed, match=r"rank 1 did not answer in time; rank 0: .*out of memory"):
            group.measure(CASE, OPTIONS)
    finally:
        group.close()
    assert nothing_left(group.folder)


STUBBORN = (
    HELLO
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if rank == 0:  # a file in shared memory, and a daemon of the library, which has left its parent
    with open(sys.argv[4], "wb+") as file:
        file.write(bytes(4096))
        file.flush()
        shared = mmap.mmap(file.fileno(), 4096)
    starter = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
    daemon = [sys.executable, "-c", "import time; time.sleep(1000)", sys.argv[4]]
    subprocess.run([sys.executable, "-c", starter, *daemon])
hello()
lines.readline()
time.sleep(1000)
"""
)


class StubbornGroup(ScriptGroup):
    def commands(self, folder, ranks):
        self.shared = Path("/dev/shm") / f"unisono-test-{folder.name}"
        made = super().commands(folder, ranks)
        return [contender_ranks.Command([*each.argv, str(self.shared)], each.environment) for each in made]


@pytest.mark.slow
def test_processes_that_ignore_sigterm_are_killed_and_their_files_removed():
    group = StubbornGroup(STUBBORN, answer_timeout_s=0.3)
    group.start()
    try:
        group.wait_until_ready()
        assert soon(lambda: len(processes_of(group.shared)) == 3)  # two ranks and a daemon
        with pytest.raises(ContenderFailed):
            group.measure(CASE, OPTIONS)
    finally:
        group.close()
    assert nothing_left(group.folder)
    assert not group.shared.exists()


DRIVER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from bench.fakes import ScriptGroup
from bench.test_contender_ranks import STUBBORN, StubbornGroup
group = StubbornGroup(STUBBORN)
group.start()
group.wait_until_ready()
print(group.folder, group.shared, flush=True)
time.sleep(1000)
"""


@pytest.mark.slow
def test_a_killed_driver_leaves_nothing_behind(tmp_path):
    words = [sys.executable, "-c", DRIVER, str(TESTS)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as driver:
        folder, shared = map(Path, driver.stdout.readline().split())
        assert processes_of(folder)
        driver.kill()
    assert soon(lambda: nothing_left(folder))
    assert soon(lambda: not shared.exists())


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    words = [
        sys.executable, "-m", "unisono", "bench", "--peers-only", "--against", "memcpy", "--bytes", "1KiB",
        "--time-budget", "600",
    ]  # fmt: skip
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as command:
        assert soon(lambda: len(processes_of(tmp_path)) == 3)  # the guard and two ranks
        command.send_signal(signal.SIGINT)
        assert command.stderr.read() == "interrupted\n"
        assert command.wait(timeout=PATIENCE_S) == 130
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


def test_the_memory_is_measured():
    group = memory_ranks(2, answer_timeout_s=PATIENCE_S)
    group.start()
    try:
        group.wait_until_ready()
        trial = group.measure(Case(all_reduce, 1 << 18, "float32"), OPTIONS)
        assert len(trial.seconds) == 2
        assert all(0 < call < 1 for calls in trial.seconds for call in calls)
        assert trial.wrong == 0
        assert not group.communicates
    finally:
        group.close()
