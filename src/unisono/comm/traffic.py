"""How many bytes a call will send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unisono.collectives import Collective
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.compiler import Lengths
from unisono.compiler.traffic import sent_bytes
from unisono.errors import UsageError

if TYPE_CHECKING:
    from unisono.comm.calls import Calls


def predicted_bytes(
    calls: Calls, collective: Collective, count: int, dtype: str, root: int | None, algorithm: Any, codec: Any
) -> int:
    """Return what this rank sends in a call about ``count`` elements in all, in equal parts."""
    size = calls.link.size
    if collective.blocked and count % size:
        raise UsageError(f"{collective}: {count} elements do not divide into {size} equal parts")
    blocks = (count // size,) * size if collective.blocked else (count,)
    lengths = Lengths(blocks, blocks)
    element = ELEMENT_BYTES[dtype]
    made = calls.compiled_for(collective, algorithm, root, count * element)
    return sent_bytes(made.lowered, made.schedule, collective, lengths, lambda n: n * element)
