"""Run the examples on ranks that share a GPU: ``python tools/gpu_programs.py [--ranks 2,4,8] [--json FILE]``.

Each program runs on every number of ranks, with a time limit, in kernel mode (under a private MPS daemon) or with
``--modes stream``. Its last loss is compared: that of ``train.py`` with one rank on the same GPU, which sees the same
rows; that of ``ddp.py`` and ``fsdp2.py``, whose ranks have separate rows, with the same ranks on CPU tensors.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gpu_jobs
import gpu_page
import gpu_watch
import measure_gpu
from gpu_jobs import KERNEL
from unisono.launch.mps import mps_variables

ROOT = Path(__file__).parent.parent
LOSS = re.compile(r"loss (?:[\d.]+ -> )?([\d.]+)")
TRAIN = "train.py --steps 10 --batch 16 --sample 5"
STRATEGIES = ("ddp", "zero1", "zero2", "zero3", "tp", "hybrid", "moe")
CODECS = ("fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "topk:0.1")
PROGRAMS = {
    "ddp.py": "ddp.py --epochs 3", "fsdp2.py": "fsdp2.py --steps 20",
    **{f"train.py, {name}": f"{TRAIN} --strategy {name}" for name in STRATEGIES},
    **{f"train.py, ddp, {name}": f"{TRAIN} --strategy ddp --codec {name}" for name in CODECS},
}  # fmt: skip
# How far losses may be apart: sums have another order of additions; a codec rounds.
CLOSE, CLOSE_WITH_CODEC = 5e-3, 0.3
LIMIT_S = 60.0


class Runner:
    """Runs programs, and keeps the losses that are compared."""

    def __init__(self, device: str, limit_s: float) -> None:
        self.device, self.limit_s = device, limit_s
        self._expected: dict[tuple[str, int, str], float | str] = {}
        self._locks: dict[tuple[str, int, str], threading.Lock] = defaultdict(threading.Lock)

    def loss(self, words: str, ranks: int, device: str, mode: str) -> float | str:
        """Return the last loss that a program prints, or what went wrong."""
        program, *options = words.split()
        mps = device == "cuda" and mode == KERNEL and ranks > 1
        start = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), *(["--mps"] if mps else [])]
        if program != "train.py":  # the others find each other as torchrun tells them
            start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        command = [*start, str(ROOT / "examples" / program), *options, "--device", device]
        with tempfile.TemporaryFile() as out, mps_variables(wanted=mps and program != "train.py") as variables:
            environment = {**os.environ, **variables, "GLOO_SOCKET_IFNAME": "lo"}
            code = gpu_watch.run(command, self.limit_s, out, environment, ROOT)
            out.seek(0)
            said = out.read().decode(errors="replace")
        losses = LOSS.findall(said)
        if code == 0 and losses:
            return float(losses[-1])
        print(f"{' '.join(command)}:\n{said[-12_000:]}", file=sys.stderr, flush=True)
        return f"not over after {self.limit_s:.0f} s" if code is None else f"ended with code {code}"

    def expected(self, name: str, ranks: int) -> float | str:
        """Return the loss to compare with."""
        alone = name.startswith("train.py")
        words = re.sub(r" --codec \S+", "", PROGRAMS[name])
        words = re.sub(r"--strategy (?!moe)\S+", "--strategy ddp", words)
        key = (words, 1 if alone else ranks, self.device if alone else "cpu")
        with self._locks[key]:
            if key not in self._expected:
                self._expected[key] = self.loss(*key, "stream")
            return self._expected[key]

    def row(self, name: str, ranks: int, mode: str) -> dict[str, Any]:
        """Run a program; return what is known of it."""
        began = time.monotonic()
        found = self.loss(PROGRAMS[name], ranks, self.device, mode)
        seconds = round(time.monotonic() - began, 1)
        expected = self.expected(name, ranks)
        row = {"name": name, "mode": mode, "ranks": ranks, "seconds": seconds, "loss": found, "expected": expected}
        if isinstance(found, str) or isinstance(expected, str):
            return {**row, "agrees": False}
        codec = "--codec" in PROGRAMS[name]
        return {**row, "agrees": abs(found - expected) <= (CLOSE_WITH_CODEC if codec else CLOSE)}


def main() -> int:
    """Run the programs; return 1 if one of them failed or its loss differs."""
    args = parse()
    result = measure_gpu.load(args.json)
    result.update(machine=gpu_jobs.machine(args.device), command="python " + " ".join(sys.argv))
    runner, ends_s = Runner(args.device, args.limit), time.monotonic() + args.total
    runs = itertools.product(args.modes.split(","), map(int, args.ranks.split(",")), args.programs.split(";"))

    def run(mode: str, ranks: int, name: str) -> dict[str, Any] | None:
        return None if time.monotonic() > ends_s else runner.row(name, ranks, mode)

    failed = False
    with ThreadPoolExecutor(args.jobs) as pool:
        started = [(each, pool.submit(run, *each)) for each in runs]
        for (mode, ranks, name), future in started:
            row = future.result()
            if row is None:
                print(f"no time left for {name} on {ranks} ranks", flush=True)
                failed = True
                continue
            failed |= not row["agrees"]
            print(f"{name}, {mode} mode, {ranks} ranks: loss {row['loss']}, expected {row['expected']} "
                  f"({row['seconds']} s){'' if row['agrees'] else ' FAILED'}", flush=True)  # fmt: skip
            measure_gpu.merge(result, [row])
            measure_gpu.save(result, args.json)
    print(gpu_page.programs_table(result))
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="8,4,2")
    parser.add_argument("--modes", default=KERNEL)
    parser.add_argument("--programs", default=";".join(PROGRAMS), help=f"some of {'; '.join(PROGRAMS)}")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time (default 1)")
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="S", help="seconds of a program")
    parser.add_argument("--total", type=float, default=300.0, metavar="S", help="seconds in all (default 300)")
    parser.add_argument("--json", type=Path, help="file of the results, which is updated")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name in args.programs.split(";"):
        if name not in PROGRAMS:
            parser.error(f"--programs: there is no {name!r}; expected some of {'; '.join(PROGRAMS)}")
    return args


if __name__ == "__main__":
    sys.exit(main())
