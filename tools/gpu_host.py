"""Measure the time of a call on CUDA tensors on the host, without the driver and without a GPU.

    python tools/gpu_host.py [--calls N] [--runs R]

Two ranks share a fake GPU (tests/gpu/fake_driver), and the tensors are tensors of torch on the CPU that lie in its
memory. Kernels, events and waits are skipped, so the result is the time of Unisono, of Python and of torch: on a GPU,
the time of the driver comes on top. A time is CPU time of the thread, which other processes disturb little; each line
states the range of several runs, in microseconds.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from gpu import gpu_ranks  # noqa: E402
from unisono import _engine, collectives  # noqa: E402
from unisono.comm.call_request import CallRequest  # noqa: E402
from unisono.compiler import Lengths  # noqa: E402
from unisono.gpu import streams as gpu_streams  # noqa: E402
from unisono.launch.spawn import spawn  # noqa: E402
from unisono.torch_backend import dispatch, streams  # noqa: E402

COUNT = 256  # elements of float32
CPU = -1  # to the engine: the tensors of the table are on the CPU


class Table(_engine.GpuTable):
    """The engine's table, for tensors that torch has on the CPU."""

    def connect(self, endpoint: Any, device: int, *more: Any) -> None:
        """Connect it."""
        super().connect(endpoint, CPU, *more)


class OnHost(streams.Streams):
    """The streams of a fake GPU."""

    def serves(self, tensor: Any) -> bool:
        """Return True: all tensors are on the fake GPU."""
        return True

    def device_of(self, tensor: Any) -> int:
        """Return the index of the only device."""
        return 0

    def current_handle(self, device: int) -> int:
        """Return the handle of the default stream."""
        return current_stream(device)

    def make(self, device: int, for_messages: bool = False) -> Any:
        """Return the handle of another stream."""
        handle = ctypes.c_void_p()
        gpu_ranks.this_gpu().cuStreamCreateWithPriority(ctypes.byref(handle), 1, 0)
        return handle.value

    def handle(self, stream: Any) -> int:
        """Return the handle of a stream."""
        return int(stream)

    def keep(self, tensors: Any, stream: Any) -> None:
        """Do nothing: there is no allocator."""


def current_stream(device: int) -> int:
    """Return the handle of the default stream, as torch does."""
    return 0


def tensor_on_gpu() -> torch.Tensor:
    """Return a tensor of torch in the memory of the fake GPU."""
    address = ctypes.c_uint64()
    gpu_ranks.this_gpu().cuMemAlloc_v2(ctypes.byref(address), 4 * COUNT)
    return torch.frombuffer((ctypes.c_uint8 * (4 * COUNT)).from_address(address.value), dtype=torch.float32)


def runs_us(call: Callable[[], object], calls: int, runs: int) -> list[float]:
    """Return the CPU time of a call in several runs, in microseconds."""
    found = []
    for _ in range(runs):
        began = time.thread_time_ns()
        for _ in range(calls):
            call()
        found.append((time.thread_time_ns() - began) / calls / 1000)
    return found


def make_group(comm: Any, folder: str) -> Any:
    """Return a process group of the ranks on the fake GPU."""
    dispatch.Streams = OnHost  # type: ignore[misc]
    store = dist.FileStore(f"{folder}/store", comm.size)
    dist.init_process_group("unisono", store=store, rank=comm.rank, world_size=comm.size)
    return dist.group.WORLD


def measure(comm: Any, folder: str, calls: int, runs: int) -> dict[str, list[float]]:
    """Measure on this rank; every rank does the same."""
    gpu = gpu_ranks.start_gpu("mps=1")
    gpu_streams.torch_stream_function = lambda: current_stream  # of a torch without CUDA
    tensor = tensor_on_gpu()
    at = tensor.data_ptr()
    request = CallRequest(collectives.all_reduce, "sum", None, None, None, "float32", Lengths((COUNT,), (COUNT,)))
    comm.enqueue(request, at, at, device=0, stream=0)
    comm.remember_on_gpu(request, tensor, None, device=0)
    comm.synchronize()
    group = make_group(comm, folder)
    dist.all_reduce(tensor, group=group)
    dist.all_reduce(tensor, group=group, async_op=True).wait()
    comm.barrier()
    comm.synchronize()
    gpu.fake_skip(1)
    asynchronous: Callable[[], object] = lambda: dist.all_reduce(tensor, group=group, async_op=True).wait()  # noqa: E731
    found = {
        "comm.all_reduce": runs_us(lambda: comm.all_reduce(tensor), calls, runs),
        "dist.all_reduce": runs_us(lambda: dist.all_reduce(tensor, group=group), calls, runs),
        "dist.all_reduce, async_op, and wait": runs_us(asynchronous, calls, runs),
    }
    comm.barrier()
    gpu.fake_skip(0)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000, help="calls of a run (default 5000)")
    parser.add_argument("--runs", type=int, default=7, help="(default 7)")
    args = parser.parse_args()
    gpu_ranks.fake_driver.library()  # built once
    _engine.GpuTable = Table  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        found = spawn(measure, 2, folder, args.calls, args.runs, timeout=60.0)[0]
    for name, times in found.items():
        print(f"{name:40}{min(times):6.2f} - {max(times):.2f} us")


if __name__ == "__main__":
    main()
