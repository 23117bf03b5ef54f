"""Measure training steps on Unisono and on Gloo: ``python tools/measure_training.py [-n RANKS] [--json FILE]``.

The model is a perceptron of 25 million parameters; the batch is tiny, so that communication dominates. Both
backends live in the same processes and take turns, a few steps each; the result is the median step of the slowest
rank. DDP sums gradients; FSDP2 (``fully_shard``) gathers parameters twice and scatters gradients. "Silent" is the
same step with nothing sent (DDP with a hook that sends nothing, FSDP2 on torch's backend "fake"): the computation,
and the copies that DDP and FSDP2 make. The rest of a step is the cost of the backend. The last line is the time of
``init_process_group``, in new groups that also take turns; all ranks begin it together.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # registers the backend "fake"
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import unisono.torch_backend  # noqa: F401 (where unisono is on the path, but not installed)
from timed_steps import Step, inputs_of, main, median_steps, perceptron, stepper

BACKENDS = ("unisono", "gloo")
INITS = 7
SETTLE_S = 0.05  # until every rank is awake


def ddp(group: dist.ProcessGroup) -> Step:
    """Return a step of DDP."""
    model = perceptron()
    return stepper(DistributedDataParallel(model, process_group=group), inputs_of(model))


def silent() -> Step:
    """Return a step of DDP that sends nothing."""
    inner = perceptron()
    model = DistributedDataParallel(inner, process_group=dist.new_group(backend="unisono"))

    def send_nothing(state, bucket):  # without annotations: torch compares them, and accepts no strings
        done = torch.futures.Future()
        done.set_result(bucket.buffer().div_(dist.get_world_size()))  # as the default hook does first
        return done

    model.register_comm_hook(None, send_nothing)
    return stepper(model, inputs_of(inner))


def fsdp2(group: dist.ProcessGroup) -> Step:
    """Return a step of FSDP2, each layer a unit."""
    model = perceptron()
    mesh = DeviceMesh.from_group(group, "cpu")
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return stepper(model, inputs_of(model))


def measure_steps(make: Callable[[dist.ProcessGroup], Step]) -> dict[str, float]:
    """Return the median step of each backend on this rank, and of a silent step, in seconds."""
    steps = {name: make(dist.new_group(backend=name)) for name in BACKENDS}
    steps["silent"] = silent() if make is ddp else make(dist.new_group(backend="fake"))
    return median_steps(steps, dist.barrier)


def run_rank(rank: int, size: int, folder: str, together: Any) -> dict[str, dict[str, float]]:
    """Measure on one rank."""
    inits: dict[str, list[float]] = {name: [] for name in BACKENDS}
    for number in range(INITS):
        for name in BACKENDS:
            store = dist.FileStore(f"{folder}/init-{name}-{number}", size)
            together.wait()  # the ranks did not destroy the previous group at the same time
            time.sleep(SETTLE_S)
            began = time.perf_counter()
            dist.init_process_group(name, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
            inits[name].append(time.perf_counter() - began)
            dist.barrier()
            dist.destroy_process_group()
    dist.init_process_group("unisono", store=dist.FileStore(f"{folder}/store", size), rank=rank, world_size=size)
    found = {"DDP step": measure_steps(ddp), "FSDP2 step": measure_steps(fsdp2)}
    found["init_process_group"] = {name: statistics.median(times) for name, times in inits.items()}
    dist.barrier()
    dist.destroy_process_group()
    return found


def line(case: str, seconds: dict[str, float]) -> str:
    """Return the printed line of a case."""
    ours, theirs = (seconds[name] * 1e3 for name in BACKENDS)
    rest = f", silent {seconds['silent'] * 1e3:.1f} ms" if "silent" in seconds else ""
    return f"{case}: unisono {ours:.1f} ms, gloo {theirs:.1f} ms{rest}; ratio {theirs / ours:.2f}"


if __name__ == "__main__":
    main(__doc__, run_rank, line)
