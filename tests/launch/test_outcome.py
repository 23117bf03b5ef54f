"""The rank that caused a failure, and the exit code, do not depend on the order in which processes end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unisono.bootstrap.fault_log import FaultRecord
from unisono.launch.outcome import Ending, Outcome, outcome_of

pytestmark = pytest.mark.slow

LOST, LATE, MISMATCH, ABORTED, INTERRUPTED = 1, 2, 3, 4, 5


@pytest.mark.parametrize(
    ("endings", "faults", "expected"),
    [
        ([Ending(0, 0), Ending(1, 0)], [], Outcome()),
        ([Ending(0, 0), Ending(1, 0)], [FaultRecord(LOST, 1)], Outcome()),  # a rank was lost, and no rank failed
        ([Ending(1, 1), Ending(2, 3)], [], Outcome(1, 1)),
        ([Ending(1, 1), Ending(2, 3)], [FaultRecord(ABORTED, 2)], Outcome(2, 3)),
        ([Ending(0, 1), Ending(1, 1), Ending(2, -9)], [FaultRecord(LOST, 2)], Outcome(2, -9)),
        # the group of ranks 2 and 3 broke first, and rank 2 then aborted the others
        (
            [Ending(0, 1), Ending(2, 1), Ending(3, -11)],
            [FaultRecord(LOST, 3), FaultRecord(ABORTED, 2)],
            Outcome(3, -11),
        ),
        # rank 2 ended without an error, but the others needed it
        ([Ending(2, 0), Ending(0, 1), Ending(1, 1)], [FaultRecord(LOST, 2)], Outcome(2, 0, others_returncode=1)),
        # rank 1 was stopped, and the launcher ended it
        (
            [Ending(0, 1), Ending(1, -15, was_signalled=True)],
            [FaultRecord(LATE, 1)],
            Outcome(1, -15, stalled=True, others_returncode=1),
        ),
        # and rank 0 then aborted a group
        (
            [Ending(0, 1), Ending(1, -15, was_signalled=True)],
            [FaultRecord(LATE, 1), FaultRecord(ABORTED, 0)],
            Outcome(1, -15, stalled=True, others_returncode=1),
        ),
        ([Ending(0, 1), Ending(1, -15, was_signalled=True)], [FaultRecord(ABORTED, 0)], Outcome(0, 1)),
        ([Ending(1, 1), Ending(0, 1)], [FaultRecord(MISMATCH, 0)], Outcome(1, 1)),
        ([Ending(1, 1)], [FaultRecord(LOST, -1), FaultRecord(LOST, 17), FaultRecord(999, 0)], Outcome(1, 1)),
    ],
)
def test_the_outcome_names_the_rank_in_the_fault_log(endings, faults, expected):
    assert outcome_of(endings, faults) == expected


HOW = {
    "exits": ("sys.exit(3)", 3, "rank 2 of 4 failed first: exit code 3"),
    "exits at once": ("os._exit(5)", 5, "rank 2 of 4 failed first: exit code 5"),
    "exits well": ("os._exit(0)", 1, "rank 2 of 4 ended before the others: exit code 0, but they still needed it"),
    "raises": ("raise KeyError('x')", 1, "rank 2 of 4 failed first: exit code 1"),
    "is interrupted": ("os.kill(os.getpid(), signal.SIGINT)", 130, "rank 2 of 4 failed first: killed by SIGINT"),
    "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", 137, "rank 2 of 4 failed first: killed by SIGKILL"),
    "crashes": ("ctypes.string_at(0)", 139, "rank 2 of 4 failed first: killed by SIGSEGV"),
    "is stopped": (
        "os.kill(os.getpid(), signal.SIGSTOP)", 1,
        "rank 2 of 4 did not respond: other ranks timed out waiting for it",
    ),
}  # fmt: skip

PROGRAM = """
import ctypes, os, resource, signal, sys, numpy as np, unisono
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
where = sys.argv[1]
def work(comm):
    part = comm.split(comm.rank // 2)
    for turn in range(4):
        comm.all_reduce(np.ones(8))
        part.all_reduce(np.ones(8))
        if comm.rank == 2 and turn == 2:
            {how}
    (part if where == "part" and comm.rank == 3 else comm).barrier()
if where == "no with":
    work(unisono.connect(timeout=1.5))
else:
    with unisono.connect(timeout=1.5) as comm:
        work(comm)
"""


def last_line(how, where):
    words = [sys.executable, "-m", "unisono", "run", "-n", "4", sys.executable, "-c", PROGRAM.format(how=HOW[how][0])]
    done = subprocess.run([*words, where], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.splitlines()[-1]


@pytest.mark.parametrize("how", HOW)
def test_the_rank_that_failed_is_named_and_its_exit_code_is_that_of_the_job(how):
    where = {"exits": "with", "exits well": "no with", "is killed": "part"}.get(how, "with")
    assert last_line(how, where) == HOW[how][1:]


@pytest.mark.long
@pytest.mark.parametrize("where", ["with", "no with", "part"])
@pytest.mark.parametrize("how", HOW)
def test_the_rank_that_failed_is_named_every_time(how, where):
    assert {last_line(how, where) for _ in range(20)} == {HOW[how][1:]}
