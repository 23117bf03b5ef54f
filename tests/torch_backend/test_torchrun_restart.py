"""torchrun starts all ranks again when one has failed, and they connect anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os
import numpy as np, torch, torch.distributed as dist, unisono
start = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("unisono")
with unisono.connect() as comm:
    for turn in range(2):
        x, t = np.ones(4), torch.ones(4)
        comm.all_reduce(x)
        dist.all_reduce(t)
        if start == 0 and comm.rank == 1:
            os._exit(5)
print(f"start {start}: {x[0]:g} {float(t[0]):g}", flush=True)
"""


@pytest.mark.long
def test_torchrun_starts_the_ranks_again(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    done = subprocess.run(
        [torchrun, "--nproc-per-node", "3", "--max-restarts", "1", str(script)], capture_output=True, text=True,
        timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("start 1: 3 3") == 3, done.stdout
    assert "PeerLost: rank 1" in done.stderr
