"""An all-reduce that sends only the largest elements of each rank.

Ranks keep elements at different positions, so partial sums would become denser with every hop. Therefore the pieces
of all ranks are all-gathered unchanged, and every rank adds them in rank order: all ranks get the same bits. With p
ranks, n elements and a fraction F, a rank sends about (p - 1) * 4 F n bytes; a dense ring sends 2 (p - 1) / p * 4 n.
Top-k sends less only while F is well below 2 / p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.codecs import messages
from unisono.codecs.arrays import cuda_coding, floats_of, is_on_cuda
from unisono.codecs.codec import Codec, find
from unisono.codecs.coding import Bytes, add_kept, encode_floats
from unisono.errors import UsageError

AllGather = Callable[[Any, Any], None]  # all_gather(out, mine): the bytes of all ranks, in rank order


def all_reduce_topk(array: Any, codec: str | Codec, size: int, all_gather: AllGather, op: str = "sum") -> None:
    """Replace ``array``, of float32, by the sum or average of the elements that each of ``size`` ranks keeps.

    ``codec`` is a top-k codec or its name, and ``op`` is "sum" (default) or "avg". ``all_gather`` is any all-gather
    of equal numbers of bytes, called once on every rank as ``all_gather(out, mine)``. With a CUDA array, these are
    torch tensors on its device, and ``all_gather`` works on torch's current stream. UsageError is raised if the
    codec, the array or the reduction does not fit.
    """
    codec = find(codec)
    check_op(codec, op)
    if is_on_cuda(array):
        cuda_coding().all_reduce_topk(array, codec, size, all_gather, op)
        return
    values = floats_of(array, messages.ARRAY_TO_REDUCE(), writable=True)
    mine = encode_floats(values, codec)
    pieces = np.empty(size * mine.size, np.uint8)
    all_gather(pieces, mine)
    add_pieces(values, pieces, codec, size, op)


def check_op(codec: Codec, op: str) -> None:
    """Raise UsageError unless the codec is top-k and supports the reduction."""
    if not codec.is_topk:
        raise UsageError(messages.NOT_TOPK(codec=codec))
    if op not in ("sum", "avg"):
        raise UsageError(messages.TOPK_OP(codec=codec, op=repr(op)))


def add_pieces(values: NDArray[np.float32], pieces: Bytes, codec: Codec, size: int, op: str) -> None:
    """Replace an array by the sum or average of the pieces of all ranks, which are stored in rank order."""
    values[:] = 0
    for piece in pieces.reshape(size, -1):
        add_kept(values, piece, codec)
    if op == "avg":
        values /= np.float32(size)
