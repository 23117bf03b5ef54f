"""Measure how fast the kernels of the codecs are on a GPU, compared with a copy on the same device.

GB/s count all bytes that a kernel reads and writes, so that 100 % is the speed of the copy; "of float32" counts the
bytes of the array only. A run is the median of several calls, timed with events; each number is the range over the
runs. Results are compared with the CPU before they are timed. `--mib` states the size of the array.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import gpu_jobs
import measure_gpu
from unisono import codecs
from unisono.codecs import Codec, ErrorFeedback
from unisono.codecs.codec import TOPK_BLOCK
from unisono.codecs.formats import FORMATS
from unisono.gpu.coding import add_pieces

RUNS, CALLS, WARM_UP = 5, 20, 5
CHECKED = 1 << 20  # elements that are compared with the CPU


class Case(NamedTuple):
    """A call to measure: its name, and the bytes that its kernels read and write."""

    codec: str
    action: str
    moved_bytes: float
    call: Callable[[], object]


def milliseconds(call: Callable[[], object]) -> float:
    """Return the median duration of a call on the GPU."""
    starts, ends = ([torch.cuda.Event(enable_timing=True) for _ in range(CALLS)] for _ in range(2))
    for start, end in zip(starts, ends, strict=True):
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in zip(starts, ends, strict=True))


def speeds(case: Case) -> list[float]:
    """Return the GB/s of each run."""
    for _ in range(WARM_UP):
        case.call()
    return [case.moved_bytes / milliseconds(case.call) / 1e6 for _ in range(RUNS)]


def check(tensor: torch.Tensor, codec: Codec) -> None:
    """Compare the beginning of an array, encoded on the GPU, with the CPU."""
    part = tensor[:CHECKED]
    if not np.array_equal(codecs.encode(part, codec).cpu().numpy(), codecs.encode(part.cpu(), codec)):
        raise SystemExit(f"{codec}: the GPU and the CPU give different bytes")


def cases_of(tensor: torch.Tensor, name: str) -> list[Case]:
    """Return the calls of a format."""
    codec, stochastic = Codec(name), Codec(name, stochastic=True, seed=1)
    check(tensor, codec)
    check(tensor, stochastic)
    n = tensor.numel()
    wire, source = codecs.encode(tensor, codec), tensor.clone()
    feedback = ErrorFeedback(codec)
    moved = 4 * n + codec.wire_bytes(n)
    return [
        Case(name, "encode", moved, lambda: codecs.encode(tensor, codec)),
        Case(name, "encode, stochastic", moved, lambda: codecs.encode(tensor, stochastic)),
        Case(name, "decode", moved, lambda: codecs.decode(wire, codec, n)),
        Case(name, "round in place", 8 * n, lambda: codecs.round_in_place(source, codec)),
        Case(name, "error feedback", 16 * n, lambda: feedback.correct("x", source)),
    ]


def topk_cases(tensor: torch.Tensor, fraction: str, size: int = 8) -> list[Case]:
    """Return the calls of top-k; ``size`` is the number of pieces that are added."""
    codec = Codec(f"topk:{fraction}")
    check(tensor, codec)
    n, k = tensor.numel(), codec.kept(tensor.numel())
    pieces, out = codecs.encode(tensor, codec).repeat(size), torch.empty_like(tensor)
    windows = -(-n // TOPK_BLOCK)
    return [
        Case(codec.name, "encode", 20 * n + 4 * (k + windows), lambda: codecs.encode(tensor, codec)),
        Case(codec.name, f"add {size} pieces", 4 * n + 4 * size * (k + windows),
             lambda: add_pieces(out, pieces, codec, size, "avg")),
    ]  # fmt: skip


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=256, help="the size of the array (default: 256)")
    parser.add_argument("--odd", action="store_true", help="an array whose codes are not aligned")
    parser.add_argument("--json", type=Path, help="file of the results, which is replaced")
    given = parser.parse_args()
    result: dict[str, Any] = {
        "rows": [],
        "machine": gpu_jobs.machine("cuda"),
        "command": "python " + " ".join(sys.argv),
    }
    n = given.mib * (1 << 20) // 4 + (33 if given.odd else 0)
    tensor = torch.randn(n, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    other = torch.empty_like(tensor)
    copy = speeds(Case("", "copy", 8 * n, lambda: other.copy_(tensor)))
    reference = statistics.median(copy)
    print(f"{torch.cuda.get_device_name()}, {n} float32; GB/s read and written, {RUNS} runs of {CALLS} calls")
    print(f"copy of the array: {min(copy):.0f} to {max(copy):.0f} GB/s\n")
    print("| codec | action | GB/s | % of the copy | GB/s of float32 |\n|---|---|--:|--:|--:|")
    cases = [case for name in FORMATS for case in cases_of(tensor, name)]
    cases += [case for fraction in ("0.001", "0.01", "0.1") for case in topk_cases(tensor, fraction)]
    for case in cases:
        found = speeds(case)
        percent = sorted(100 * each / reference for each in found)
        floats = statistics.median(found) * 4 * n / case.moved_bytes
        print(
            f"| {case.codec} | {case.action} | {min(found):.0f} to {max(found):.0f} "
            f"| {percent[0]:.0f} to {percent[-1]:.0f} | {floats:.0f} |",
            flush=True,
        )
        result["rows"].append({"codec": case.codec, "action": case.action, "gb_per_s": found, "percent": percent})
        measure_gpu.save(result, given.json)


if __name__ == "__main__":
    main()
