"""How many bytes a call will send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unisono.collectives import Collective, all_gather
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.comm.encoding import codec_for, rounding_mode_of
from unisono.compiler import Lengths
from unisono.compiler.traffic import sent_bytes
from unisono.errors import UsageError

if TYPE_CHECKING:
    from unisono.comm.dispatch import Calls


def predicted_bytes(
    calls: Calls, collective: Collective, count: int, dtype: str, root: int | None, algorithm: Any, codec: Any
) -> int:
    """Return what this rank sends in a call about ``count`` elements in all, in equal parts."""
    size, element = calls.link.size, ELEMENT_BYTES[dtype]
    if collective.blocked and count % size:
        raise UsageError(f"{collective}: {count} elements do not divide into {size} equal parts")
    found = codec_for(collective, codec, dtype)
    if found is not None and found.is_topk:  # an all-gather of what each rank keeps
        return predicted_bytes(calls, all_gather, size * found.wire_bytes(count), "uint8", None, None, None)
    blocks = (count // size,) * size if collective.blocked else (count,)
    made = calls.compiled_for(collective, algorithm, root, count * element, rounding_mode_of(found))
    bytes_of = (lambda n: n * element) if found is None else found.wire_bytes
    return sent_bytes(made.lowered, made.schedule, collective, Lengths(blocks, blocks), bytes_of)
