"""Encodes arrays to bytes and decodes them: with the loops of the engine, and CUDA arrays on their device.

Without the engine, the reference in numpy takes the place of its loops: the same bytes, more slowly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.codecs import messages
from unisono.codecs.arrays import cuda_coding, floats_of, is_on_cuda
from unisono.codecs.codec import Codec, find
from unisono.errors import EngineMissing, UsageError

try:
    from unisono import _engine as loops
except EngineMissing:
    from unisono.codecs import reference_loops as loops  # type: ignore[no-redef]

Bytes = NDArray[np.uint8]
BEST = ""  # the variant of the loops: the best one for this processor


def encode(array: Any, codec: str | Codec) -> Any:
    """Return the wire of ``array``, of float32, with ``codec`` (or its name): ``codec.wire_bytes(array.size)`` bytes.

    The wire of a CUDA array has the same bytes; it is a torch tensor on the same device, made on torch's current
    stream. UsageError is raised if the array is not float32, or if there is no such codec.
    """
    codec = find(codec)
    if is_on_cuda(array):
        return cuda_coding().encode(array, codec)
    return encode_floats(floats_of(array, messages.ARRAY_TO_ENCODE()), codec)


def encode_floats(values: NDArray[np.float32], codec: Codec) -> Bytes:
    """Return the wire of a flat numpy array."""
    wire = np.empty(codec.wire_bytes(values.size), np.uint8)
    if codec.is_topk:
        loops.encode_topk(wire, values.view(np.uint8), codec.kept(values.size))
    else:
        loops.encode(codec.name, wire, values.view(np.uint8), codec.stochastic, codec.seed, first=0, variant=BEST)
    return wire


def decode(wire: Any, codec: str | Codec, n: int) -> Any:
    """Return the ``n`` numbers that ``wire`` holds in the format of ``codec`` (or its name).

    Elements that top-k did not keep are 0. The numbers of a wire on a CUDA device are a torch tensor on that device.
    UsageError is raised if the wire does not have the bytes of ``n`` elements.
    """
    codec = find(codec)
    if is_on_cuda(wire):
        return cuda_coding().decode(wire, codec, n)
    check_wire(wire, codec, n)
    out = np.zeros(n, np.float32)
    if codec.is_topk:
        add_kept(out, wire, codec)
    else:
        loops.decode(codec.name, out.view(np.uint8), wire, BEST)
    return out


def add_kept(out: NDArray[np.float32], wire: Bytes, codec: Codec) -> None:
    """Add what top-k kept to an array."""
    loops.add_topk(out.view(np.uint8), wire, codec.kept(out.size))


def round_in_place(array: Any, codec: str | Codec) -> None:
    """Replace ``array``, of float32, by its decoded wire with ``codec`` (or its name): what other ranks receive.

    UsageError is raised if the array is not float32 or cannot be written, or if there is no such codec.
    """
    codec = find(codec)
    if is_on_cuda(array):
        cuda_coding().round_in_place(array, codec)
        return
    values = floats_of(array, messages.ARRAY_TO_ROUND(), writable=True)
    if codec.is_topk:
        values[:] = decode(encode_floats(values, codec), codec, values.size)
        return
    wire = np.empty(codec.wire_bytes(values.size), np.uint8)
    loops.encode_rounding_source(
        codec.name, wire, values.view(np.uint8), codec.stochastic, codec.seed, first=0, variant=BEST
    )


def check_wire(wire: Bytes, codec: Codec, n: int) -> None:
    """Raise UsageError unless an array has the bytes of n elements."""
    if wire.dtype != np.uint8 or wire.shape != (codec.wire_bytes(n),):
        raise UsageError(
            messages.BAD_WIRE(count=n, codec=codec, bytes=codec.wire_bytes(n), dtype=wire.dtype, shape=wire.shape)
        )
