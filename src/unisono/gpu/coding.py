"""Codecs on CUDA arrays: the bits that the CPU's codecs give, computed on the device, on torch's current stream.

Arrays are torch tensors, or objects with ``__cuda_array_interface__``, whose memory torch can use too. Nothing is
copied to the host, and the host does not wait, except in `decode` of top-k, which checks the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from unisono.codecs import messages as codec_messages
from unisono.codecs.arrays import address_of
from unisono.codecs.codec import TOPK_BLOCK, Codec
from unisono.errors import UsageError
from unisono.gpu import coding_messages as messages
from unisono.gpu.device_functions import launch, multiprocessors

CODING, TOPK = "coding.cu", "topk.cu"  # files of kernels
TILE = 8192  # elements that a block works on at a time
BLOCKS_PER_MULTIPROCESSOR = 4  # of the kernel that counts magnitudes: each block adds its counts once
TOPK_MACROS = ("UNISONO_WIRE=wire_bf16",)  # the format of what is kept
PASSES = 3  # to find the limit of top-k
# Selection, Tally (in topk.cu)
SELECTION_BYTES = PASSES * 2048 * 8 + 8 + 4 + (PASSES + 1) * 4 + 4
TALLY_BYTES = 16

AllGather = Callable[[torch.Tensor, torch.Tensor], None]


def floats_of(array: Any, name: str, *, writable: bool = False) -> torch.Tensor:
    """Return a flat view of a CUDA array of float32; raise UsageError if codecs cannot use its memory directly."""
    tensor = tensor_of(array)
    if tensor.dtype != torch.float32:
        raise UsageError(codec_messages.OTHER_DTYPE(name=name, dtype=tensor.dtype))
    address_of(tensor, name)
    if not tensor.is_contiguous():
        raise UsageError(codec_messages.NOT_CONTIGUOUS(name=name, shape=tuple(tensor.shape)))
    if tensor.is_neg():
        if writable:
            raise UsageError(codec_messages.NEGATIVE_VIEW(name=name))
        tensor = tensor.resolve_neg()
    return tensor.detach().view(-1)


def tensor_of(array: Any) -> torch.Tensor:
    """Return a CUDA array as a tensor with the same memory."""
    return array if isinstance(array, torch.Tensor) else torch.as_tensor(array)


def encode(array: Any, codec: Codec) -> torch.Tensor:
    """Return the wire of an array: a tensor of bytes on the same device."""
    values = floats_of(array, codec_messages.ARRAY_TO_ENCODE())
    wire = torch.empty(codec.wire_bytes(values.numel()), dtype=torch.uint8, device=values.device)
    if not values.numel():
        return wire
    if codec.is_topk:
        _encode_topk(values, wire, codec.kept(values.numel()))
    else:
        _launch_coding(codec, "encode", values, values, wire, values.numel(), codec.seed, 0)
    return wire


def decode(wire: Any, codec: Codec, n: int) -> torch.Tensor:
    """Return the numbers of a wire; the wire of top-k is checked."""
    given = tensor_of(wire)
    if given.dtype != torch.uint8 or given.shape != (codec.wire_bytes(n),):
        raise UsageError(
            codec_messages.BAD_WIRE(
                count=n, codec=codec, bytes=codec.wire_bytes(n), dtype=given.dtype, shape=tuple(given.shape)
            )
        )
    given = given.contiguous()
    out = torch.empty(n, dtype=torch.float32, device=given.device)
    if not n:
        return out
    if not codec.is_topk:
        _launch_coding(codec, "decode", out, given, out, n)
    elif bool(add_pieces(out, given, codec, 1, "sum")):
        raise UsageError(messages.NOT_A_WIRE(codec=codec, count=n))
    return out


def round_in_place(array: Any, codec: Codec) -> None:
    """Replace an array by its decoded wire."""
    values = floats_of(array, codec_messages.ARRAY_TO_ROUND(), writable=True)
    if not values.numel():
        return
    if codec.is_topk:
        add_pieces(values, encode(values, codec), codec, 1, "sum")
    else:
        _launch_coding(codec, "encode_rounding_source", values, values, None, values.numel(), codec.seed, 0)


def all_reduce_topk(array: Any, codec: Codec, size: int, all_gather: AllGather, op: str) -> None:
    """Replace an array by the sum or average of the elements that each of ``size`` ranks keeps.

    ``all_gather(out, mine)`` gathers tensors of bytes, on the current stream.
    """
    values = floats_of(array, codec_messages.ARRAY_TO_REDUCE(), writable=True)
    mine = encode(values, codec)
    pieces = torch.empty(size * mine.numel(), dtype=torch.uint8, device=values.device)
    all_gather(pieces, mine)
    add_pieces(values, pieces, codec, size, op)


def correct(array: torch.Tensor, residual: torch.Tensor, codec: Codec) -> None:
    """Add a residual to an array, round the array like the codec, and keep what that drops as the new residual.

    Both are flat tensors of float32, of the same length.
    """
    if not array.numel():
        return
    if not codec.is_topk:
        _launch_coding(codec, "correct", array, array, residual, array.numel(), codec.seed)
        return
    array += residual
    residual.copy_(array)
    round_in_place(array, codec)
    residual -= array
    residual.masked_fill_(~torch.isfinite(array), 0)


def add_pieces(values: torch.Tensor, pieces: torch.Tensor, codec: Codec, size: int, op: str) -> torch.Tensor:
    """Replace an array by the sum or average of top-k pieces, one from each of ``size`` ranks, added in rank order.

    Return a tensor that becomes 1 if a piece is not a valid wire; its invalid elements are not added.
    """
    n, device = values.numel(), values.device
    k = codec.kept(n)
    if pieces.data_ptr() % 4:  # a wire begins with numbers of 32 bits
        pieces = pieces.clone()
    fault = torch.zeros(1, dtype=torch.int32, device=device)
    starts = torch.empty(size * (-(-n // TOPK_BLOCK) + 1), dtype=torch.int64, device=device)
    if not n:
        return fault
    divisor = float(size) if op == "avg" else 1.0
    launch(TOPK, TOPK_MACROS, "start_pieces", size, device, pieces, n, k, size, starts, fault)
    launch(TOPK, TOPK_MACROS, "add_pieces", _tiles(n), device, pieces, values, n, k, size, starts, divisor, fault)
    return fault


def _encode_topk(values: torch.Tensor, wire: torch.Tensor, k: int) -> None:
    n, device = values.numel(), values.device
    selection = torch.zeros(SELECTION_BYTES, dtype=torch.uint8, device=device)
    tallies = torch.empty(TALLY_BYTES * _tiles(n), dtype=torch.uint8, device=device)
    blocks = min(_tiles(n), BLOCKS_PER_MULTIPROCESSOR * multiprocessors(device.index))
    for number in range(PASSES):
        launch(TOPK, TOPK_MACROS, "count_magnitudes", blocks, device, values, n, k, selection, number)
    launch(TOPK, TOPK_MACROS, "count_kept", _tiles(n), device, values, wire, n, selection, tallies)
    launch(TOPK, TOPK_MACROS, "write_kept", _tiles(n), device, values, wire, n, k, selection, tallies)


def _launch_coding(codec: Codec, kernel: str, on: torch.Tensor, *arguments: torch.Tensor | int | None) -> None:
    macros = (f"UNISONO_WIRE=wire_{codec.name}", f"UNISONO_STOCHASTIC={codec.stochastic:d}")
    elements = next(each for each in arguments if isinstance(each, int))
    launch(CODING, macros, kernel, _tiles(elements), on.device, *arguments)


def _tiles(n: int) -> int:
    return -(-n // TILE)
