"""An all-reduce of CUDA arrays with ``codec="topk:F"``: see topk_all_reduce.py; here the GPU encodes and adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unisono import _engine
from unisono.collectives import all_gather
from unisono.comm import gpu_messages, messages
from unisono.comm.call_request import CallRequest
from unisono.comm.call_schedule import label_of
from unisono.compiler import Lengths
from unisono.errors import UsageError


def enqueue_largest(
    request: CallRequest,
    array: Any,
    size: int,
    device: int,
    make_plan: Callable[[CallRequest], _engine.GpuPlan],
    run: Callable[[_engine.GpuPlan, int, int, int], None],
) -> tuple[Callable[[int], None], str]:
    """Return a function that enqueues the call on a stream, and the text of the call.

    The array is known to be float32. ``run`` runs a plan, given the addresses of input and output and the stream.
    """
    codec, op = request.codec, request.op or "sum"
    if request.algorithm is not None:
        raise UsageError(messages.TOPK_HAS_NO_ALGORITHM(algorithm=repr(request.algorithm), codec=codec))
    try:
        from unisono.gpu.topk import all_reduce_topk_cuda
    except ModuleNotFoundError as error:
        raise UsageError(gpu_messages.TOPK_NEEDS_TORCH(codec=codec, module=error.name)) from error
    label = label_of(request, "all_gather", "cuda")

    def enqueue(stream: int) -> None:
        def gather(out: int, mine: int, nbytes: int) -> None:
            lengths = Lengths((nbytes,) * size, (nbytes,) * size)
            run(make_plan(CallRequest(all_gather, lengths=lengths, label=label)), mine, out, stream)

        all_reduce_topk_cuda(array, codec, size, op, gather, stream=stream)

    return enqueue, label
