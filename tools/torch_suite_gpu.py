"""PyTorch's own tests of NCCL process groups, run on Unisono with several ranks on one GPU.

The tests ship with torch (see torch_suite_tests.py). They are loaded under the name of NCCL, and believe that each
rank has a GPU: every rank finds its GPU at index 0. A test that names another index needs one GPU per rank, and
counts as skipped. ``python tools/torch_suite.py --gpu`` runs them, under a private MPS daemon. Every rank is a new
interpreter and imports this module.
"""

from __future__ import annotations

import os
from typing import Any

RANKS = 4
PLAYED, BACKEND = "nccl", "cpu:unisono,cuda:unisono"
GPUS = 8  # as many as the tests see
PATTERNS = ("*cuda*", "*nccl*", "*object*")
OTHER_GPU = "invalid device ordinal"  # CUDA's words
ONE_PER_RANK = "needs one GPU per rank"

os.environ.setdefault("WORLD_SIZE", str(RANKS))
os.environ.setdefault("INIT_METHOD", "file://")  # the tests create the file
os.environ["BACKEND"] = PLAYED

import torch  # noqa: E402
import torch.testing._internal.common_distributed as common  # noqa: E402
import torch.testing._internal.distributed.distributed_test as loaded  # noqa: E402

import unisono.torch_backend  # noqa: E402, F401

tests: Any = loaded
_select_device = torch.cuda.set_device


def _select_only_device(device: Any) -> None:
    _select_device(0)


def _only_gpu(size: int, backend: str) -> dict[int, list[int]]:
    return {rank: [0] for rank in range(size)}


os.environ["BACKEND"] = tests.BACKEND = BACKEND
torch.cuda.device_count = lambda: GPUS
torch.cuda.set_device = _select_only_device
tests.init_multigpu_helper = _only_gpu


class Suite(tests.TestDistBackend, tests.DistributedTest._DistTestBase):  # type: ignore[misc]
    """The tests; the ranks of each are new processes, as a process that was forked cannot use CUDA."""

    def setUp(self) -> None:
        """Start the ranks."""
        super().setUp()
        tests.INIT_METHOD = os.environ["INIT_METHOD"]
        self._spawn_processes()


def limit(seconds: float) -> None:
    """Set the time of a test: torch's runner then shows where each rank is, and ends them."""
    common.TIMEOUT_DEFAULT, common.TIMEOUT_OVERRIDE = seconds, {}


def without_other_gpus(found: dict[str, dict[str, Any]]) -> None:
    """Mark the tests that need one GPU per rank as skipped."""
    for outcome in found.values():
        if outcome["outcome"] == "failed" and OTHER_GPU in outcome["why"] + outcome.get("log", ""):
            outcome.update(outcome="skipped", why=ONE_PER_RANK)
