"""The measurements of tools/measure_gpu.py, as a rank runs them: all parts of one mode and one number of ranks."""

from __future__ import annotations

import functools
import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from by_hand import ByHand, NotByHand, block_counts
from gpu_jobs import Rows, select_device
from gpu_timing import Timer, buffers, copy_rate, is_wrong
from unisono.comm.communicator import Communicator

MIB = 1 << 20
OTHER_COLLECTIVES = ("all_gather", "reduce_scatter", "all_to_all", "broadcast")
GLOO_RUNS, GLOO_RUN_S = 3, 0.05
HOST_BYTES = 1024
COPY_BYTES = 1 << 30


def measure(comm: Communicator, rows_file: str, settings: dict[str, Any]) -> None:
    """Measure every part of the settings on this rank."""
    device = settings["device"]
    select_device(comm, device)
    rows = Rows(rows_file, comm.rank, mode=settings["mode"], ranks=comm.size)
    timer = Timer(comm, device)
    began = time.monotonic()
    for part in (part for part in PARTS if part in settings["parts"]):
        problem = ""
        try:
            PARTS[part](comm, timer, rows, settings)
        except Exception as error:  # the other parts are measured nevertheless
            traceback.print_exc()
            problem = f"rank {comm.rank}: {type(error).__name__}: {error}"
        failed = timer.on_slowest(bool(problem))
        rows.add(part="seconds", name=part, s=round(time.monotonic() - began, 2))
        if failed:
            rows.add(part="problem", name=part, text=problem or "another rank failed")
    timer.close()
    if dist.is_initialized():
        dist.destroy_process_group()


def bandwidth(comm: Communicator, timer: Timer, rows: Rows, settings: dict[str, Any]) -> None:
    """Measure the rate at which the memory of the GPU is read and written."""
    nbytes = COPY_BYTES if settings["device"] == "cuda" else 4 * MIB
    rows.add(part="bandwidth", bytes_per_s=copy_rate(timer, settings["device"], nbytes))


def all_reduce(comm: Communicator, timer: Timer, rows: Rows, settings: dict[str, Any]) -> None:
    """Measure all_reduce of all sizes."""
    _ours(comm, timer, rows, settings, ["all_reduce"], settings["sizes"])


def collectives(comm: Communicator, timer: Timer, rows: Rows, settings: dict[str, Any]) -> None:
    """Measure the other collectives at two sizes."""
    _ours(comm, timer, rows, settings, OTHER_COLLECTIVES, settings["few_sizes"])


def _ours(
    comm: Communicator, timer: Timer, rows: Rows, settings: dict[str, Any], names: Sequence[str], sizes: list[int]
) -> None:
    for name in names:
        for nbytes in sizes:
            tensors = buffers(name, nbytes, comm.size, settings["device"])
            call = functools.partial(getattr(comm, name), *tensors)
            began = time.perf_counter()
            wrong = is_wrong(name, tensors, call, comm.rank, comm.size)
            first_s = timer.on_slowest(time.perf_counter() - began)  # with the compilation of the kernel
            times_us = timer.runs_us(call)
            wrong |= is_wrong(name, tensors, call, comm.rank, comm.size)
            rows.add(
                part="times", contender="unisono", collective=name, bytes=nbytes, us=times_us,
                wrong=bool(timer.on_slowest(wrong)), first_s=first_s,
            )  # fmt: skip


def host(comm: Communicator, timer: Timer, rows: Rows, settings: dict[str, Any]) -> None:
    """Measure the time in which a call returns to the host, through the communicator and through torch."""
    tensor = torch.zeros(HOST_BYTES // 4, device=settings["device"])
    group = _torch_group(comm, settings["device"])
    for through, call in {
        "comm": functools.partial(comm.all_reduce, tensor),
        "torch": functools.partial(dist.all_reduce, tensor, group=group),
        "torch, async_op": functools.partial(dist.all_reduce, tensor, group=group, async_op=True),
    }.items():
        for _ in range(3):
            call()
        rows.add(part="host", through=through, bytes=HOST_BYTES, us=[timer.host_us(call) for _ in range(3)])
    rows.add(
        part="torch", bytes=HOST_BYTES, us=timer.runs_us(functools.partial(dist.all_reduce, tensor, group=group))
    )


def graph(comm: Communicator, timer: Timer, rows: Rows, settings: dict[str, Any]) -> None:
    """Measure calls that a CUDA graph replays (kernel mode)."""
    if settings["device"] != "cuda" or settings["mode"] != "kernel":
        return
    tensor, calls = torch.zeros(HOST_BYTES // 4, device="cuda"), 20
    comm.all_reduce(tensor)
    timer.together()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(calls):
            comm.all_reduce(tensor)
    rows.add(part="graph", bytes=HOST_BYTES, us=[us / calls for us in timer.runs_us(captured.replay)])


def by_hand(comm: Communicator, timer: Timer, rows: Rows, settings: dict[str, Any]) -> None:
    """Measure kernels that are written by hand, and ours in turns with them: the same communication."""
    library = settings.get("by_hand")
    if library is None or settings["mode"] != "kernel":
        return
    sizes = {name: settings["sizes"] if name == "all_reduce" else settings["few_sizes"] for name in BY_HAND}
    try:
        kernels = ByHand(Path(library), timer.control, max(map(max, sizes.values())))
    except NotByHand as error:
        rows.add(part="by_hand_problem", text=str(error))
        return
    stream = torch.cuda.current_stream().cuda_stream
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    for name, algorithm in BY_HAND.items():
        for nbytes in sizes[name]:
            tensors = buffers(name, nbytes, comm.size, settings["device"])
            ours = functools.partial(getattr(comm, name), *tensors, algorithm=algorithm)
            ours_us = timer.runs_us(ours)
            found: dict[int, list[float]] = {}
            wrong = False
            for blocks in block_counts(nbytes, comm.size, multiprocessors):
                wrong |= kernels.wrong(name, nbytes, blocks, stream)
                found[blocks] = timer.runs_us(functools.partial(kernels.run, name, nbytes, blocks, stream))
            blocks = min(found, key=lambda number: min(found[number]))
            ours_us += timer.runs_us(ours)
            rows.add(
                part="by_hand", collective=name, bytes=nbytes, us=found[blocks], blocks=blocks, unisono_us=ours_us,
                algorithm=algorithm, wrong=bool(timer.on_slowest(wrong)),
            )  # fmt: skip
    kernels.close()


# The algorithm of Unisono that communicates as the kernel written by hand does.
BY_HAND = {"all_reduce": "direct", "all_gather": "naive", "reduce_scatter": "naive"}


def gloo(comm: Communicator, timer: Timer, rows: Rows, settings: dict[str, Any]) -> None:
    """Measure Gloo on the same tensors."""
    _start_torch(comm)
    cases = [("all_reduce", nbytes) for nbytes in settings["sizes"]]
    cases += [(name, nbytes) for name in OTHER_COLLECTIVES for nbytes in settings["few_sizes"]]
    for name, nbytes in cases:
        tensors = buffers(name, nbytes, comm.size, settings["device"])
        call = _gloo_call(name, tensors)
        row = {"part": "times", "contender": "gloo", "collective": name, "bytes": nbytes}
        try:
            wrong = is_wrong(name, tensors, call, comm.rank, comm.size)
        except (RuntimeError, ValueError) as error:  # on all ranks alike: Gloo lacks it for CUDA tensors
            rows.add(**row, unsupported=str(error).splitlines()[0])
            continue
        rows.add(**row, us=timer.runs_us(call, GLOO_RUNS, GLOO_RUN_S), wrong=bool(timer.on_slowest(wrong)))


def _gloo_call(name: str, tensors: tuple[Any, ...]) -> Callable[[], object]:
    methods = {
        "all_reduce": dist.all_reduce, "broadcast": functools.partial(dist.broadcast, src=0),
        "all_gather": dist.all_gather_into_tensor, "reduce_scatter": dist.reduce_scatter_tensor,
        "all_to_all": dist.all_to_all_single,
    }  # fmt: skip
    return functools.partial(methods[name], *tensors)


def _start_torch(comm: Communicator) -> None:
    """Make the default group of torch.distributed, on Gloo."""
    if not dist.is_initialized():
        path = os.path.join(os.environ["TMPDIR"], "store")
        dist.init_process_group("gloo", store=dist.FileStore(path, comm.size), rank=comm.rank, world_size=comm.size)


def _torch_group(comm: Communicator, device: str) -> Any:
    _start_torch(comm)
    return dist.new_group(backend="cpu:unisono,cuda:unisono" if device == "cuda" else "unisono")


# In the order in which they are measured: first those that matter most, last those that could hang.
PARTS: dict[str, Callable[[Communicator, Timer, Rows, dict[str, Any]], None]] = {
    "bandwidth": bandwidth, "all_reduce": all_reduce, "host": host, "collectives": collectives, "gloo": gloo,
    "by_hand": by_hand, "graph": graph,
}  # fmt: skip
