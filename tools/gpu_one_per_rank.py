"""Check ranks with one GPU each: ``python tools/gpu_one_per_rank.py [-n RANKS]``, on a machine with several GPUs.

This has not been run yet: the project has had machines with one GPU only. It checks that the ranks use kernel mode
through peer access (NVLink or PCIe), that random calls give the bits of the CPU engine, that killed ranks are
noticed, and measures all_reduce. NCCL, the default for such machines, can be measured next to it with nccl-tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import gpu_jobs

TOOLS = Path(__file__).parent


def main() -> int:
    """Run the checks; return 1 if one fails, and 2 if there are too few GPUs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", dest="size", type=int, help="ranks (default: one per GPU)")
    args = parser.parse_args()
    gpus = gpu_jobs.machine("cuda")["gpus"]
    size = args.size or len(gpus)
    if not 2 <= size <= len(gpus):
        print(f"{size} ranks on {len(gpus)} GPUs; expected 2 or more ranks, and a GPU for each", file=sys.stderr)
        return 2
    # "stream" stands for a job without MPS here: with one GPU each, the ranks use kernel mode nevertheless.
    commands = [
        ["-m", "unisono", "info"],
        [str(TOOLS / "gpu_stress.py"), "--modes", "stream", "-n", str(size), "--short"],
        [str(TOOLS / "measure_gpu.py"), "--modes", "stream", "--ranks", str(size), "--parts", "all_reduce,host"],
    ]  # fmt: skip
    codes = [subprocess.run([sys.executable, *command]).returncode for command in commands]
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
