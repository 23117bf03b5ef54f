"""An all-reduce with ``codec="topk:F"`` on CUDA arrays, on one stream (codecs/topk.py has the idea).

Every rank encodes its largest numbers on its device, the wires are all-gathered, and every rank adds them in the
order of the ranks: the bits that the CPU gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from unisono.codecs.codec import Codec
from unisono.codecs.topk import check_op
from unisono.gpu.coding import all_reduce_topk, tensor_of

# all_gather(out, mine, bytes of mine): addresses on the device; it enqueues on the same stream.
AllGather = Callable[[int, int, int], None]


def all_reduce_topk_cuda(array: Any, codec: Codec, size: int, op: str, all_gather: AllGather, *, stream: int) -> None:
    """Enqueue the all-reduce of ``array`` with top-k codec ``codec`` between ``size`` ranks on a stream.

    ``op`` is "sum" or "avg", and ``stream`` is a CUstream of the array's device. The memory in between belongs to
    torch and to this stream, so torch does not reuse it before the stream has used it. The caller keeps ``array``.
    The host does not wait. UsageError is raised if the codec, the array or the reduction does not fit.
    """
    check_op(codec, op)

    def gather(pieces: torch.Tensor, mine: torch.Tensor) -> None:
        all_gather(pieces.data_ptr(), mine.data_ptr(), mine.numel())

    tensor = tensor_of(array)
    with torch.cuda.stream(torch.cuda.ExternalStream(stream, tensor.device)):
        all_reduce_topk(tensor, codec, size, gather, op)
