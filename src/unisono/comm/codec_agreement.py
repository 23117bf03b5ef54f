"""The codec of a call: its name resolved, its limits checked, and the algorithms with which all ranks still agree.

A codec rounds what is sent. An algorithm may be used with it only if all ranks end with the same bits.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from unisono import collectives
from unisono.algorithms.catalogue import algorithms_serving
from unisono.codecs import AutoCodec, Codec, find, find_auto
from unisono.codecs.formats import BLOCK
from unisono.collectives import Collective, all_reduce
from unisono.comm import messages
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.compiler import CodecBlock
from unisono.errors import GoalError, UsageError
from unisono.message import listed
from unisono.schedule import Schedule
from unisono.verifier import ProvedSchedule
from unisono.verifier.rounding import proved_with_codec, rounding_of

ENCODED = "float32"


class RoundingMode(Enum):
    """The way in which the numbers of a message are rounded."""

    NONE = "none"
    TO_NEAREST = "to nearest"
    STOCHASTIC = "at random"


def codec_for(collective: Collective, codec: Any, dtype: str) -> Codec | None:
    """Return the codec of a call, if it names one; raise UsageError if the call cannot use it."""
    if codec is None:
        return None
    try:
        found = find(codec)
    except UsageError as error:
        raise UsageError(messages.IN_CALL(call=collective, problem=error.message)) from None
    if dtype != ENCODED:
        raise UsageError(messages.CODEC_DTYPE(call=collective, codec=found, dtype=dtype, encoded=ENCODED))
    if found.is_topk and collective is not all_reduce:
        raise UsageError(messages.TOPK_ALL_REDUCE_ONLY(call=collective, codec=found))
    return found


def auto_codec_of(collective: Collective, codec: Any) -> AutoCodec | None:
    """Return the codec that a call allows with ``codec="auto:..."``; None if it states something else."""
    if codec is None:
        return None
    try:
        return find_auto(codec)
    except UsageError as error:
        raise UsageError(messages.IN_CALL(call=collective, problem=error.message)) from None


def codec_block_of(codec: Codec | None) -> CodecBlock | None:
    """Return the codec block of a codec: what the engine encodes at a time."""
    return None if codec is None else CodecBlock(BLOCK * ELEMENT_BYTES[ENCODED], codec.wire_bytes(BLOCK))


def rounding_mode_of(codec: Codec | None) -> RoundingMode:
    """Return the way in which a codec rounds."""
    if codec is None:
        return RoundingMode.NONE
    return RoundingMode.STOCHASTIC if codec.stochastic else RoundingMode.TO_NEAREST


def with_codec(proved: ProvedSchedule, rounding: RoundingMode) -> ProvedSchedule:
    """Return the proof with this rounding of messages; raise GoalError if ranks would not agree."""
    if rounding is RoundingMode.NONE:
        return proved
    try:
        return proved_with_codec(proved, rounding is RoundingMode.STOCHASTIC, warns=False)
    except GoalError as error:
        schedule = proved.schedule
        collective, size = collectives.find(schedule.collective), schedule.size
        others = [
            each.name
            for each in algorithms_serving(collective, size)
            if agrees(each.schedule(size, schedule.root), rounding)
        ]
        hint = messages.OTHER_ALGORITHMS_AGREE(algorithms=listed(others))
        raise GoalError(error.what, **{**error.parts(), "hint": hint}) from None


def agrees(schedule: Schedule, rounding: RoundingMode) -> bool:
    """Return whether all ranks get the same bits."""
    if rounding is RoundingMode.NONE:
        return True
    try:
        return bool(rounding_of(schedule, rounding is RoundingMode.STOCHASTIC, warns=False))
    except GoalError:
        return False
