"""Run a short job on CUDA tensors, for compute-sanitizer: ``compute-sanitizer python tools/gpu_sanitized.py``.

Two ranks (``-n``) run every collective with every kind of move once: aligned and not, short and long, reductions and
copies, several passes. Without MPS, ranks that share a GPU use stream mode, in which no kernel waits for another: the
sanitizer slows kernels down by orders of magnitude and may run one at a time. ``--mps`` tries kernel mode.
"""

from __future__ import annotations

import argparse
import sys

import torch

import unisono
from gpu_jobs import select_device
from gpu_timing import buffers, is_wrong
from unisono.comm.communicator import Communicator

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
SIZES = (64, 100_000, 1 << 20)  # bytes


def check(comm: Communicator, device: str) -> int:
    """Run the collectives; return the number of wrong results on this rank."""
    select_device(comm, device)
    wrong = 0
    for name in COLLECTIVES:
        for nbytes in SIZES:
            tensors = buffers(name, nbytes, comm.size, device)
            wrong += is_wrong(name, tensors, lambda: getattr(comm, name)(*tensors), comm.rank, comm.size)  # noqa: B023
    for dtype in (torch.bfloat16, torch.float64, torch.int8):
        tensor = torch.ones(10_001, dtype=dtype, device=device)[1:]  # not aligned
        for algorithm in ("direct", "ring", "recursive_doubling"):
            comm.all_reduce(tensor.fill_(1), algorithm=algorithm)
            wrong += not bool((tensor == comm.size).all())
    return wrong


def main() -> int:
    """Run the job; return 1 if a result was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", dest="size", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--mps", action="store_true", help="under a private MPS daemon: kernel mode")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    # New interpreters, which the sanitizer follows.
    wrong = unisono.spawn(check, args.size, args.device, start="spawn", mps=args.mps, timeout=120.0)
    print(f"{args.size} ranks, wrong results: {sum(wrong)}")
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
