"""``unisono run --trace`` records everything, without changes to the script."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from launching import LIMIT_S
from stories import check_structure
from unisono.tracing import read_run

pytestmark = pytest.mark.slow

SCRIPT = """
import numpy as np, unisono
with unisono.connect() as comm:
    for _ in range(3):
        comm.all_reduce(np.ones(1000), algorithm="ring")
    half = comm.split(comm.rank % 2)
    half.all_gather(np.ones(5 * half.size), np.ones(5), algorithm="ring")
    comm.recv(np.ones(1), 0, tag=4) if comm.rank == 1 else comm.rank == 0 and comm.send(np.ones(1), 1, tag=4)
    {more}
"""


def traced(tmp_path, size, more="pass", script=SCRIPT):
    path = tmp_path / "script.py"
    path.write_text(script.format(more=more))
    command = [sys.executable, "-m", "unisono", "run", "-n", str(size), "--trace", tmp_path / "trace", path]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_communicator_of_every_rank_is_in_the_file(tmp_path, size):
    done = traced(tmp_path, size)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "trace" / "run.json"
    assert f"trace of {size} ranks: {path}" in done.stderr
    assert [one.name for one in (tmp_path / "trace").iterdir()] == ["run.json"]
    check_structure(path)
    groups = read_run(tmp_path / "trace").communicators
    assert sorted(tuple(sorted(group.job_ranks.values())) for group in groups) == sorted(
        [tuple(range(size)), tuple(range(0, size, 2)), tuple(range(1, size, 2))]
    )
    for group in groups:
        if group.size == size and len(group.calls) > 1:
            assert [call.label for call in group.calls][:3] == ["all_reduce/ring"] * 3
            assert len(group.transfers) == 2
        else:
            assert [call.label for call in group.calls] == ["all_gather/ring"]


def test_only_the_trace_of_a_killed_rank_is_missing(tmp_path):
    done = traced(tmp_path, 3, "import os; comm.rank == 1 and os.kill(os.getpid(), 9); comm.barrier()")
    assert done.returncode == 128 + 9
    assert "trace of 2 ranks, without rank 1: " in done.stderr
    path = tmp_path / "trace" / "run.json"
    check_structure(path, whole=False)
    groups = read_run(path, missing_ok=True).communicators
    assert any(group.missing == [1] for group in groups)


def test_a_later_run_replaces_an_earlier_one(tmp_path):
    for size in (3, 2):
        traced(tmp_path, size)
        parts = json.loads((tmp_path / "trace" / "run.json").read_text())["otherData"]["unisono"]["parts"]
        assert max(part["job_rank"] for part in parts) == size - 1


def test_a_program_that_does_not_communicate_leaves_no_trace(tmp_path):
    done = traced(tmp_path, 2, script="print('hello')\n")
    assert done.returncode == 0
    assert "no trace: no rank has closed a Unisono communicator" in done.stderr


def test_a_path_that_is_not_a_folder_is_rejected_before_any_rank_starts(tmp_path):
    (tmp_path / "trace").touch()
    done = traced(tmp_path, 2)
    assert done.returncode == 2
    assert "expected a folder" in done.stderr.replace("\n", " ")


def test_ranks_spawned_by_a_rank_are_not_ranks_of_the_job(tmp_path):
    script = """
import numpy as np, unisono
unisono.spawn(lambda comm: comm.all_reduce(np.ones(3)) and None, 2)
with unisono.connect() as comm:
    comm.barrier()
"""
    assert traced(tmp_path, 2, script=script).returncode == 0
    (group,) = read_run(tmp_path / "trace").communicators
    assert [call.collective for call in group.calls] == ["barrier"]
