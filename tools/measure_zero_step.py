"""Measure the fixed cost of a Zero step: a toy model, one or several source trees, in turns.

::

    python tools/measure_zero_step.py -n 2 --tree old=../old/src --tree new=src

The model is so small that hooks, checks and the latency of calls make up most of the step. A *trial* starts new
ranks with one tree first on ``PYTHONPATH``, runs WARM_UP steps, and takes the 10th percentile over STEPS steps on
rank 0 for each stage: the steps that other processes disturb least. Trials of the trees alternate, so that a change
of the machine's load affects all of them. The table shows the lowest trial, the quartiles, the median and the
highest trial, in milliseconds per step.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

STAGES = (1, 2, 3)
WARM_UP, STEPS = 20, 100
UNITS, WIDTH, ROWS = 4, 16, 8


def trial(size: int) -> dict[int, float]:
    """Return the seconds of a step on rank 0, by stage."""
    import unisono

    return unisono.spawn(_on_a_rank, size, timeout=120)[0]


def _on_a_rank(comm: object) -> dict[int, float]:
    import torch
    from torch import nn

    from unisono.parallel import Zero

    torch.set_num_threads(1)
    percentiles = {}
    for stage in STAGES:
        torch.manual_seed(0)
        model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(UNITS)))
        zero = Zero(model, comm, optimizer=lambda shards: torch.optim.SGD(shards, 0.01), stage=stage)
        x = torch.randn(ROWS, WIDTH)
        seconds = []
        for _ in range(WARM_UP + STEPS):
            began = time.perf_counter()
            zero.zero_grad()
            zero(x).square().mean().backward()
            zero.step()
            seconds.append(time.perf_counter() - began)
        percentiles[stage] = statistics.quantiles(seconds[WARM_UP:], n=10)[0]
    return percentiles


def main() -> None:
    """Run the trials of all trees in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-n", type=int, default=2, help="ranks (default: 2)")
    parser.add_argument("--trials", type=int, default=10, help="trials of each tree (default: 10)")
    parser.add_argument("--tree", action="append", default=[], metavar="NAME=FOLDER", help="a source folder")
    parser.add_argument("--one-trial", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one_trial:
        print(json.dumps(trial(args.n)))
        return
    trees = dict(each.split("=", 1) for each in args.tree or [f"this={Path(__file__).parent.parent / 'src'}"])
    results: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for number in range(args.trials):
        order = list(trees) if number % 2 == 0 else list(reversed(trees))
        for name in order:
            results[name].append(_run_trial(args.n, trees[name]))
    print(f"{args.n} ranks, {args.trials} trials of {STEPS} steps, ms per step: lowest; quartiles, median; highest\n")
    print("| stage | " + " | ".join(trees) + " |\n|---|" + "---|" * len(trees))
    for stage in STAGES:
        cells = [_summary([each[str(stage)] * 1e3 for each in results[name]]) for name in trees]
        print(f"| {stage} | " + " | ".join(cells) + " |")


def _run_trial(size: int, folder: str) -> dict[str, float]:
    """Run one trial in new processes that import unisono from a folder."""
    command = [sys.executable, __file__, "-n", str(size), "--one-trial"]
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve())}
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    percentiles: dict[str, float] = json.loads(output)
    return percentiles


def _summary(milliseconds: list[float]) -> str:
    low, middle, high = statistics.quantiles(milliseconds, n=4) if len(milliseconds) > 1 else milliseconds * 3
    return f"{min(milliseconds):.2f}; {low:.2f} to {high:.2f}, median {middle:.2f}; {max(milliseconds):.2f}"


if __name__ == "__main__":
    main()
