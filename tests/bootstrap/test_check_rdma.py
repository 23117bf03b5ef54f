"""tools/check_rdma.py: what it demands of RDMA, and a run over TCP, since machines that run tests have no RDMA."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from check_rdma import Result, verdict
from unisono.bootstrap import ucx_search

TOOL = Path(__file__).parents[2] / "tools" / "check_rdma.py"
GOOD = Result("ucx 1.20.0 (rc_mlx5/mlx5_0:1)", True, [], 1.5, 12e9, 0.001)


def test_data_that_bypasses_the_kernel_with_the_right_bits_passes():
    assert verdict(GOOD, allow_tcp=False) == []


def test_tcp_and_wrong_bits_do_not_pass():
    (device,) = verdict(GOOD._replace(has_rdma=False), allow_tcp=False)
    assert device == "UCX has no RDMA device: ucx 1.20.0 (rc_mlx5/mlx5_0:1)"
    (share,) = verdict(GOOD._replace(kernel_share=1.02), allow_tcp=False)
    assert share == "the network interface has sent 102% of the data: that is not RDMA"
    assert verdict(GOOD._replace(has_rdma=False, kernel_share=1.02), allow_tcp=True) == []
    assert verdict(GOOD._replace(wrong_sums=[1000]), allow_tcp=True) == ["the sum of 1000 elements has wrong bits"]


@pytest.mark.skipif(not ucx_search.packaged_libraries(), reason="SKIPPED, NOT TESTED: UCX (pip install libucx-cu12)")
def test_the_script_runs_over_tcp():
    done = subprocess.run([sys.executable, TOOL, "--allow-tcp"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(":", 1) for line in done.stdout.splitlines())
    assert lines["transport"].strip().startswith("ucx 1.")
    assert lines["sums"].strip() == "right bits for 5 lengths"
    assert lines["result"].strip() == "ok"
