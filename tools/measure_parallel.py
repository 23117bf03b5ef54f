"""Compare our strategies with torch's: ``python tools/measure_parallel.py [-n RANKS] [--json FILE]``.

Two models, a perceptron of 25 million parameters and a GPT of 10.7 million, with tiny batches, so that
communication dominates. All contenders live in the same processes and take turns, a few steps each; the result is
the median step of the slowest rank.

- Data parallel: our DataParallel on a communicator, torch's DDP on our backend and on Gloo.
- Sharded (ZeRO-3): our Zero on a communicator, torch's ``fully_shard`` on our backend and on Gloo.
- "Alone": the same step of the bare model, which sends nothing.
- Overlap of our DataParallel, with a batch 16 times as large, because a tiny one has no computation to hide behind:
  how long a rank waits in a step (*exposed*), and how long the same collectives take with no computation in
  between; ``unisono.parallel.overlap`` describes both measurements.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import unisono
import unisono.torch_backend
from timed_steps import (
    SmallGPT,
    Step,
    inputs_of,
    main,
    median_steps,
    perceptron,
    small_gpt,
    stepper,
)
from unisono.parallel import DataParallel, Group, Zero, group_of, measure_overlap

LARGER = 16  # the batch with which overlap is measured
MODELS: dict[str, Callable[[], nn.Module]] = {"perceptron": perceptron, "GPT": small_gpt}


def sgd(parameters: Any) -> torch.optim.Optimizer:
    """Return the optimiser of all contenders."""
    return torch.optim.SGD(parameters, 1e-3)


def units_of(model: nn.Module) -> list[nn.Module]:
    """Return the parts of a model that are gathered one at a time."""
    if isinstance(model, SmallGPT):
        return list(model.blocks)
    return [layer for layer in model if isinstance(layer, nn.Linear)]


def torch_sharded(make: Callable[[], nn.Module], group: Any) -> Step:
    """Return a step of torch's fully_shard."""
    model = make()
    inputs, mesh = inputs_of(model), DeviceMesh.from_group(group, "cpu")
    for unit in units_of(model):
        fully_shard(unit, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return stepper(model, inputs)


def our_sharded(make: Callable[[], nn.Module], group: Group) -> Step:
    """Return a step of our Zero."""
    model = make()
    zero = Zero(model, group, optimizer=sgd, stage=3, units=units_of(model))
    return stepper(zero, inputs_of(model), zero.optimizer)


def torch_data_parallel(make: Callable[[], nn.Module], group: Any) -> Step:
    """Return a step of torch's DDP."""
    model = make()
    return stepper(DistributedDataParallel(model, process_group=group), inputs_of(model))


def our_data_parallel(make: Callable[[], nn.Module], group: Group, times: int = 1) -> Step:
    """Return a step of our DataParallel."""
    model = make()
    return stepper(DataParallel(model, group), inputs_of(model, times))


def run_rank(rank: int, size: int, folder: str, together: Any) -> dict[str, dict[str, float]]:
    """Measure on one rank."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "TORCHELASTIC_RUN_ID": folder,
    }  # fmt: skip
    dist.init_process_group("unisono", store=dist.FileStore(f"{folder}/store", size), rank=rank, world_size=size)
    found: dict[str, dict[str, float]] = {}
    with unisono.connect() as comm:
        group = group_of(comm)
        for model, make in MODELS.items():
            model_alone = make()
            steps = {"ours": our_data_parallel(make, group), "alone": stepper(model_alone, inputs_of(model_alone))}
            steps |= {name: torch_data_parallel(make, dist.new_group(backend=name)) for name in ("unisono", "gloo")}
            found[f"data parallel, {model}"] = median_steps(steps, comm.barrier)
            overlap = measure_overlap(our_data_parallel(make, group, LARGER), group, steps=20)
            found[f"overlap, {model}"] = {"exposed": overlap.exposed_s, "all": overlap.alone_s}
            steps = {"ours": our_sharded(make, group)}
            steps |= {name: torch_sharded(make, dist.new_group(backend=name)) for name in ("unisono", "gloo")}
            found[f"sharded, {model}"] = median_steps(steps, comm.barrier)
        comm.barrier()
    dist.destroy_process_group()
    return found


def line(case: str, seconds: dict[str, float]) -> str:
    """Return the printed line of a case."""
    if "exposed" in seconds:
        exposed, whole = seconds["exposed"] * 1e3, seconds["all"] * 1e3
        return f"{case}: {exposed:.1f} ms of {whole:.1f} ms exposed, {exposed / whole:.0%}"
    ours, on_ours, on_gloo = (seconds[name] * 1e3 for name in ("ours", "unisono", "gloo"))
    alone = f", alone {seconds['alone'] * 1e3:.1f} ms" if "alone" in seconds else ""
    return (
        f"{case}: ours {ours:.1f} ms, torch on unisono {on_ours:.1f} ms ({on_ours / ours:.2f} x), "
        f"torch on gloo {on_gloo:.1f} ms ({on_gloo / ours:.2f} x){alone}"
    )


if __name__ == "__main__":
    main(__doc__, run_rank, line)
