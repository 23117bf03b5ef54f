"""Compile the kernels that tests and tools need, on all cores at once: ``python tools/gpu_kernels.py [--arch 90]``.

A rank compiles a kernel when a call first needs it, which takes about a second, on each rank. NVRTC needs no GPU, and
its images are kept in the user's cache, so this saves minutes of a GPU's time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from unisono.codecs.formats import FORMATS
from unisono.comm.gpu_plans import TYPE_TO_MOVE
from unisono.gpu.agreement import TABLE_SIZES
from unisono.gpu.connection import FIRST_KERNEL
from unisono.gpu.nvrtc import kernel_image
from unisono.reductions import ELEMENT_BYTES, REDUCTIONS, kind_of

Variant = tuple[str, str, str]  # a type, a reduction and a wire format


def variants() -> list[Variant]:
    """Return the variants of the interpreter kernel that calls can need, the frequent ones first."""
    moves = [FIRST_KERNEL, *((dtype, "none", "none") for dtype in TYPE_TO_MOVE.values())]
    sums = [
        (dtype, name, "none")
        for name in ("sum", *REDUCTIONS)
        for dtype in ELEMENT_BYTES
        # An average is a sum that is divided afterwards.
        if name != "avg" and kind_of(dtype) in REDUCTIONS[name].kinds
    ]
    averages = [(dtype, "none", "none") for dtype in ELEMENT_BYTES]
    wires = [("float32", "sum", wire) for wire in FORMATS] + [("float32", "none", wire) for wire in FORMATS]
    return list(dict.fromkeys([*moves, *sums, *wires, *averages]))


def compile_kernel(variant: Variant, most: int, major: int, minor: int) -> float:
    """Compile a variant; return the seconds that it took."""
    began = time.monotonic()
    kernel_image(*variant, most, major, minor)
    return time.monotonic() - began


def main() -> int:
    """Compile; return 1 if a variant does not compile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="90", help="the compute capability, without its point (default 90)")
    parser.add_argument("--limit", type=float, default=60.0, metavar="S", help="seconds in all (default 60)")
    parser.add_argument("--list", action="store_true", help="list the variants")
    args = parser.parse_args()
    if args.list:
        print("\n".join(".".join(variant) for variant in variants()))
        return 0
    major, minor = int(args.arch[:-1]), int(args.arch[-1])
    began, failed, done = time.monotonic(), 0, 0
    pool = ProcessPoolExecutor(os.cpu_count())
    waiting = {pool.submit(compile_kernel, each, TABLE_SIZES[0], major, minor): each for each in variants()}
    try:
        for future in as_completed(waiting, timeout=args.limit):
            error = future.exception()
            if error is not None:
                failed += 1
                print(f"{'.'.join(waiting[future])}: {error}", flush=True)
            else:
                done += 1
    except TimeoutError:
        print(f"not over after {args.limit:.0f} s; ranks compile the others when they need them", flush=True)
    pool.shutdown(wait=False, cancel_futures=True)
    print(f"{done} of {len(waiting)} kernels in {time.monotonic() - began:.1f} s; {failed} failed", flush=True)
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # without waiting for compilations that are not over


if __name__ == "__main__":
    sys.exit(main())
