"""Steps of a GPT of 125 million parameters, as the ranks of tools/measure_gpu_training.py run them."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import unisono.torch_backend  # noqa: F401 (where unisono is on the path, but not installed)
from gpu_jobs import Rows, select_device
from gpu_timing import Timer
from timed_steps import SmallGPT, Step, stepper
from unisono.comm.communicator import Communicator

# 12 layers of width 768, as GPT-2; 16 heads, so that 8 ranks can share them; 125 million parameters.
SHAPE = {"width": 768, "layers": 12, "heads": 16, "words": 26_000, "length": 256}
SMALL = {"width": 64, "layers": 2, "heads": 8, "words": 100, "length": 8}  # for tests of the tool
SINGLE = "single rank"


def train(comm: Communicator, rows_file: str, settings: dict[str, Any]) -> None:
    """Measure every case of the settings with one backend."""
    device, backend = settings["device"], settings["contender"]
    select_device(comm, device)
    torch.set_float32_matmul_precision("high")
    rows = Rows(rows_file, comm.rank, contender=backend, ranks=comm.size)
    timer = Timer(comm, device)
    if backend != SINGLE:
        on_both = {"unisono": "cpu:unisono,cuda:unisono", "gloo": "gloo"}[backend]
        store = dist.FileStore(os.path.join(os.environ["TMPDIR"], "store"), comm.size)
        dist.init_process_group(
            on_both if device == "cuda" else backend, store=store, rank=comm.rank, world_size=comm.size
        )
    for name in settings["cases"]:
        problem, times_ms = "", []
        try:
            step = CASES[name](comm, settings) if backend != SINGLE else single(comm, settings)
            times_ms = _timed(timer, step, settings["warmup"], settings["steps"])
        except Exception as error:  # the other cases are measured nevertheless
            traceback.print_exc()
            problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        failed = bool(timer.on_slowest(bool(problem)))
        if failed:
            rows.add(case=name, problem=problem or "another rank failed")
        else:
            rows.add(case=name, ms=times_ms, parameters=_parameters(settings))
        if device == "cuda":
            torch.cuda.empty_cache()
    timer.close()
    if dist.is_initialized():
        dist.destroy_process_group()


def _timed(timer: Timer, step: Step, warmup: int, steps: int) -> list[float]:
    """Return the milliseconds of each step on the slowest rank."""
    found = []
    for number in range(warmup + steps):
        timer.together()
        began = time.perf_counter()
        step()
        timer.synchronize()
        took_ms = timer.on_slowest(time.perf_counter() - began) * 1e3
        if number >= warmup:
            found.append(took_ms)
    return found


def _shape(settings: dict[str, Any]) -> dict[str, int]:
    return SMALL if settings["small"] else SHAPE


def _model(settings: dict[str, Any]) -> SmallGPT:
    """Return the same model on every rank."""
    torch.manual_seed(0)
    with torch.device(settings["device"]):
        return SmallGPT(**_shape(settings))


def _parameters(settings: dict[str, Any]) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in SmallGPT(**_shape(settings)).parameters())


def _words(settings: dict[str, Any], rows: int) -> torch.Tensor:
    shape = _shape(settings)
    return torch.randint(shape["words"], (rows, shape["length"]), device=settings["device"])


def single(comm: Communicator, settings: dict[str, Any]) -> Step:
    """Return a step on one rank, with the rows of all ranks."""
    return stepper(_model(settings), _words(settings, settings["rows"]))


def ddp(comm: Communicator, settings: dict[str, Any]) -> Step:
    """Return a step of DDP; each rank has its share of the rows."""
    model = DistributedDataParallel(_model(settings))
    return stepper(model, _words(settings, max(1, settings["rows"] // comm.size)))


def fsdp2(comm: Communicator, settings: dict[str, Any]) -> Step:
    """Return a step of FSDP2, each layer a unit; each rank has its share of the rows."""
    model = _model(settings)
    mesh = init_device_mesh(settings["device"], (comm.size,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return stepper(model, _words(settings, max(1, settings["rows"] // comm.size)))


def tensor_parallel(comm: Communicator, settings: dict[str, Any]) -> Step:
    """Return a step of tensor parallel: attention and perceptron are split over the ranks, which see all rows."""
    model = _model(settings)
    mesh = init_device_mesh(settings["device"], (comm.size,))
    plan = {
        "to_qkv": ColwiseParallel(), "to_out": RowwiseParallel(),
        "mlp.0": ColwiseParallel(), "mlp.2": RowwiseParallel(),
    }  # fmt: skip
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
        block.heads //= comm.size
    # Parameters that are split and others cannot be in one call of an optimiser that treats several at once.
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, foreach=False)
    torch.manual_seed(1)  # all ranks read the same rows
    return stepper(model, _words(settings, settings["rows"]), optimizer)


CASES: dict[str, Callable[[Communicator, dict[str, Any]], Step]] = {
    "DDP": ddp, "FSDP2": fsdp2, "tensor parallel": tensor_parallel,
}  # fmt: skip
