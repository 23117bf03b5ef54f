"""``unisono run --trace`` records training with PyTorch like any other program."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from stories import check_structure
from unisono.tracing import read_run, summary

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.long)])
def test_a_training_started_by_torchrun_is_recorded(tmp_path, size):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    command = [sys.executable, "-m", "unisono", "run", "-n", "1", "--trace", tmp_path, "--", *torchrun]
    done = subprocess.run(
        [*command, EXAMPLES / "ddp.py", "--epochs", "2"], capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert f"trace of {size} ranks: " in done.stderr
    check_structure(tmp_path / "run.json")
    run = read_run(tmp_path)
    assert all(sorted(group.job_ranks) == list(range(size)) for group in run.communicators)
    made = Counter(call.collective for group in run.communicators for call in group.calls)
    assert made["all_reduce"] > 10  # gradients
    assert any(call.ranks[0].background for group in run.communicators for call in group.calls)
    assert f"{size} ranks" in summary(run)
