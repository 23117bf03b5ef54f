"""The fast path of frequent calls on GPU tensors: the engine puts a call that equals an earlier one into its stream.

It is a part of the fast path (fast_path.py). The engine has one table of plans for tensors on the CPU, and one for
tensors on the GPU; the latter also finds torch's current stream and records the events of asynchronous calls.
"""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from unisono.comm.call_request import CallRequest
from unisono.comm.dispatch import NUMBERS
from unisono.torch_backend.cuda_work import CudaWork, Held
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.tensor_call import FINISHED
from unisono.torch_backend.tensors import Tensor


def remember(dispatcher: GroupDispatcher, request: CallRequest, out: Tensor, source: Tensor | None) -> None:
    """Remember a call on these tensors, which are used as they are."""
    calls = dispatcher.cuda_calls()
    calls.comm.remember_on_gpu(request, out, source, device=calls.streams.device_of(out))


def repeat(
    dispatcher: GroupDispatcher, name: str, kind: CallRequest, out: Tensor, source: Tensor | None, is_async: bool,
    limit_s: float,
) -> dist.Work | None:  # fmt: skip
    """Make a call that equals an earlier one; return None if there is none: then nothing was done."""
    calls = dispatcher.cuda
    if calls is None:
        return None
    table = calls.comm.gpu_table
    call = (NUMBERS[kind.collective], out, source, kind.op, kind.root or 0, kind.algorithm, limit_s)
    if not is_async:
        if not table.repeat(*call):
            return None
        dispatcher.calls += 1
        return FINISHED
    streams = calls.streams
    if not streams.serves(out):
        return None
    device = streams.device_of(out)
    stream, handle = calls.collective_stream(device)
    event = table.start(*call, handle)
    if event is None:
        return None
    dispatcher.calls += 1
    used: list[Any] = [out] if source is None else [source, out]
    held = Held(streams, used, stream, streams.current_handle(device))
    return CudaWork(calls, name, (device, stream), [out], held, event)
