"""What a call with a codec asks for: which codec, and whether it is for such arrays."""

from __future__ import annotations

from typing import Any

from unisono.codecs import Codec, find
from unisono.codecs.formats import BLOCK
from unisono.collectives import Collective, all_reduce
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.comm.codec_agreement import RoundingMode
from unisono.compiler import Block
from unisono.errors import UsageError

ENCODED = "float32"


def codec_for(collective: Collective, codec: Any, dtype: str) -> Codec | None:
    """Return the codec that a call names, if it names one; raise UsageError if it cannot be used there."""
    if codec is None:
        return None
    try:
        found = find(codec)
    except UsageError as error:
        raise UsageError(f"{collective}: {error}") from None
    if dtype != ENCODED:
        raise UsageError(
            f"{collective}: codec={found} with an array of {dtype}; codecs are for {ENCODED}. Convert the array, or "
            "leave the codec out"
        )
    if found.is_topk and collective is not all_reduce:
        raise UsageError(
            f"{collective}: codec={found} is for all_reduce only; choose another codec, such as fp8_e4m3"
        )
    return found


def block_of(codec: Codec | None) -> Block | None:
    """Return what the engine encodes at a time."""
    return None if codec is None else Block(BLOCK * ELEMENT_BYTES[ENCODED], codec.wire_bytes(BLOCK))


def rounding_mode_of(codec: Codec | None) -> RoundingMode:
    """Return how what is sent is rounded."""
    return (
        RoundingMode.NONE
        if codec is None
        else RoundingMode.STOCHASTIC
        if codec.stochastic
        else RoundingMode.TO_NEAREST
    )
