"""A program that exceeds its time on a GPU says where every one of its processes is (tools/gpu_watch.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import gpu_device
import gpu_jobs
import gpu_watch
from gpu.gpu_ranks import on_gpu, start_gpu

TESTS = str(gpu_device.ROOT / "tests")


def waiting_for_a_peer(comm, rows_file, settings):
    """Rank 1 never makes the second call."""
    start_gpu(settings["gpus"])
    x = on_gpu(np.ones(1000, np.float32))
    comm.all_reduce(x)
    comm.synchronize()
    if comm.rank == 1:
        time.sleep(300)
    comm.all_reduce(x)
    x.numpy()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["kernel", "stream"])
def test_a_job_that_hangs_says_where_each_rank_is_and_for_whom_it_waits(monkeypatch, capsys, mode):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([TESTS, f"{TESTS}/gpu"]))
    gpus = "mps=1" if mode == "kernel" else "mps=0"
    _, problem = gpu_jobs.run("test_gpu_watch:waiting_for_a_peer", 2, {"gpus": gpus}, mps=False, limit_s=30)
    said = capsys.readouterr().err
    assert "killed after 30 s" in problem
    assert "in waiting_for_a_peer" in said
    assert "in run_job" in said, "the process that started the ranks"
    assert f"rank 0 of 2 (communicator 0, {mode} mode): 2 calls enqueued, 1 seen to be over" in said
    assert "all_reduce(1000 float32, op=sum" in said.split("first of the others: call ")[1]
    assert f"rank 1 of 2 (communicator 0, {mode} mode): no call runs" in said
    if mode == "kernel":
        assert "its kernel waited for rank 1 in step 1, after 1 calls of this rank" in said


def test_a_command_is_ended_at_its_limit_with_all_its_processes(tmp_path):
    program = "import os, time\nif os.fork() == 0: print(os.getpid(), flush=True)\ntime.sleep(300)"
    with (tmp_path / "out").open("w+b", buffering=0) as out:
        assert gpu_watch.run([sys.executable, "-c", program], 6.0, out, dict(os.environ), tmp_path) is None
    said = (tmp_path / "out").read_text()
    assert "where the 2 processes are" in said
    assert said.count('File "<string>", line 3 in <module>') == 2
    ends_s = time.monotonic() + 10
    while (is_left := os.path.exists(f"/proc/{said.split()[0]}/exe")) and time.monotonic() < ends_s:
        time.sleep(0.05)
    assert not is_left


def test_the_code_of_a_command_is_returned(tmp_path):
    with (tmp_path / "out").open("w+b", buffering=0) as out:
        assert gpu_watch.run([sys.executable, "-c", "exit(7)"], 60.0, out, dict(os.environ), tmp_path) == 7


# ---- tools/gpu_device.py ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", gpu_device.steps(gpu_device.ROOT / "OUT"))
def test_the_files_that_a_step_names_exist(name):
    for command in gpu_device.steps(gpu_device.ROOT / "OUT")[name][::2]:
        for word in command.split():
            if word.startswith(("tools/", "tests/")):
                assert (gpu_device.ROOT / word).exists()


def test_the_runbook_names_every_step_and_no_other():
    page = (gpu_device.ROOT / "docs" / "gpu_runbook.md").read_text()
    named = {
        word
        for line in page.splitlines()
        if "`python3 tools/gpu_device.py" in line
        for group in line.split("gpu_device.py ")[1].split(" --out")[0].split()
        for word in group.split(gpu_device.TOGETHER)
    }
    assert named == set(gpu_device.steps(gpu_device.ROOT)) - {"one_per_rank"}  # needs several GPUs


def test_the_limits_of_a_line_of_the_runbook_are_those_of_a_command():
    assert gpu_device.TOTAL_S < 600


def test_a_run_leaves_what_it_had_reached(tmp_path):
    command = [sys.executable, str(gpu_device.ROOT / "tools" / "gpu_device.py"), "--rehearse", "--out", str(tmp_path)]
    done = subprocess.run([*command, "tests8+kernels", "one_per_rank"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "summary.json").read_text())
    assert found["tests8"] == {"code": "no rehearsal"}
    assert (found["kernels"]["code"], found["one_per_rank"]["code"]) == (0, 0)
    assert "usage: gpu_one_per_rank.py" in (tmp_path / "log.txt").read_text()


MEASURES = ("host", "training", "kills", "codecs", "by_hand", "gloo", "stream_host")


def test_the_runbook_measures_nothing_while_anything_else_runs():
    """Kills measure, too: whether the memory of the GPU is what it was."""
    page = (gpu_device.ROOT / "docs" / "gpu_runbook.md").read_text()
    together = [word.strip("`") for word in page.split() if gpu_device.TOGETHER in word and "tests" in word]
    assert together
    for group in together:
        assert not set(group.split(gpu_device.TOGETHER)) & set(MEASURES)
