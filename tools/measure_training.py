"""Measure training steps on Unisono and on Gloo: ``python tools/measure_training.py [-n RANKS] [--json FILE]``.

The model is a perceptron of 25 million parameters; the batch is tiny, so that communication is what matters. Both
backends live in the same processes and take turns, a few steps each; what is printed is the median step of the
slowest rank. DDP sums gradients; FSDP2 (``fully_shard``) gathers parameters twice and scatters gradients. "Silent" is
the same step with nothing sent (DDP with a hook that sends nothing, FSDP2 on torch's backend "fake"): computing, and
the copies that DDP and FSDP2 make. What a backend adds to that is its own. Last, how long ``init_process_group``
takes, in fresh groups that take turns too; all ranks begin it together.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import queue
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # makes the backend "fake" known
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import unisono.torch_backend  # noqa: F401 (where unisono is on the path, but not installed)

BACKENDS = ("unisono", "gloo")
WIDTH, LAYERS, BATCH = 2500, 4, 4
ROUNDS, STEPS = 6, 4  # steps of each backend in a round
INITS = 7
SETTLE_S = 0.05  # until everybody has woken up


def perceptron() -> nn.Sequential:
    """Return the model: 25 million parameters in four layers."""
    torch.manual_seed(0)
    return nn.Sequential(*(part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU())))


def stepper(model: nn.Module) -> Callable[[], None]:
    """Return a function that trains one step."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = torch.randn(BATCH, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


def ddp(group: dist.ProcessGroup) -> Callable[[], None]:
    """Return a step of DDP."""
    return stepper(DistributedDataParallel(perceptron(), process_group=group))


def silent() -> Callable[[], None]:
    """Return a step of DDP that sends nothing."""
    model = DistributedDataParallel(perceptron(), process_group=dist.new_group(backend="unisono"))

    def send_nothing(state, bucket):  # without types: torch compares them, and takes no strings
        done = torch.futures.Future()
        done.set_result(bucket.buffer().div_(dist.get_world_size()))  # as the default hook does first
        return done

    model.register_comm_hook(None, send_nothing)
    return stepper(model)


def fsdp2(group: dist.ProcessGroup) -> Callable[[], None]:
    """Return a step of FSDP2, each layer a unit."""
    model = perceptron()
    mesh = DeviceMesh.from_group(group, "cpu")
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return stepper(model)


def measure_steps(make: Callable[[dist.ProcessGroup], Callable[[], None]]) -> dict[str, float]:
    """Return the median step of each backend on this rank, and of one that sends nothing, in seconds."""
    steps = {name: make(dist.new_group(backend=name)) for name in BACKENDS}
    steps["silent"] = silent() if make is ddp else make(dist.new_group(backend="fake"))
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(ROUNDS + 1):
        names = list(steps)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            for _ in range(STEPS):
                dist.barrier()
                began = time.perf_counter()
                steps[name]()
                if number:  # the first round is to warm up
                    times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def run_rank(rank: int, size: int, folder: str, answers: Any, together: Any) -> None:
    """Measure, on one rank."""
    torch.set_num_threads(1)
    if "GLOO_SOCKET_IFNAME" not in os.environ:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    inits: dict[str, list[float]] = {name: [] for name in BACKENDS}
    for number in range(INITS):
        for name in BACKENDS:
            store = dist.FileStore(f"{folder}/init-{name}-{number}", size)
            together.wait()  # the group before this one was not destroyed everywhere at the same time
            time.sleep(SETTLE_S)
            began = time.perf_counter()
            dist.init_process_group(name, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
            inits[name].append(time.perf_counter() - began)
            dist.barrier()
            dist.destroy_process_group()
    dist.init_process_group("unisono", store=dist.FileStore(f"{folder}/store", size), rank=rank, world_size=size)
    found = {"DDP step": measure_steps(ddp), "FSDP2 step": measure_steps(fsdp2)}
    found["init_process_group"] = {name: statistics.median(times) for name, times in inits.items()}
    answers.put(found)
    dist.barrier()
    dist.destroy_process_group()


def measure(size: int) -> dict[str, dict[str, float]]:
    """Return the seconds of each case and backend, on the slowest rank."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        answers: Any = context.Queue()
        together = context.Barrier(size)
        ranks = [
            context.Process(target=run_rank, args=(rank, size, folder, answers, together)) for rank in range(size)
        ]
        for process in ranks:
            process.start()
        found: list[Any] = []
        while len(found) < size:
            with contextlib.suppress(queue.Empty):
                found.append(answers.get(timeout=1))
            if any(process.exitcode for process in ranks):
                for process in ranks:
                    process.kill()
                raise SystemExit("a rank has failed; see above")
        for process in ranks:
            process.join(60)
    return {case: {name: max(rank[case][name] for rank in found) for name in found[0][case]} for case in found[0]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", dest="size", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--json", type=Path, help="also write what was measured to this file")
    asked = parser.parse_args()
    measured = measure(asked.size)
    for case, seconds in measured.items():
        ours, theirs = (seconds[name] * 1e3 for name in BACKENDS)
        rest = f", silent {seconds['silent'] * 1e3:.1f} ms" if "silent" in seconds else ""
        print(
            f"{asked.size} ranks, {case}: unisono {ours:.1f} ms, gloo {theirs:.1f} ms{rest}; "
            f"ratio {theirs / ours:.2f}"
        )
    if asked.json:
        asked.json.write_text(json.dumps({"ranks": asked.size, "seconds": measured}, indent=1) + "\n")
