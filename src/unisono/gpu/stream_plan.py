"""Stream operations: a device program as operations that the host puts into a CUDA stream.

This is how ranks that share a GPU run without MPS: a kernel that waits for another process would keep that process
from running. Here the stream waits, and a kernel runs only the moves of one step.

Operations are quadruples of 32-bit words: kind, peer, number, step. A call begins with an entry, which is the first
signal of each pair: the counts of the program come after it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from unisono.gpu.program import DeviceProgram

POST, SIGNAL, WAIT, LAUNCH = range(4)


class StreamOp(NamedTuple):
    """One operation.

    POST writes the entry for a peer; SIGNAL and WAIT are for the ``number``-th signal of the pair in this call;
    LAUNCH runs the moves of a ``step``, in the pass ``number``.
    """

    kind: int
    peer: int = 0
    number: int = 0
    step: int = 0


def stream_ops(program: DeviceProgram) -> list[StreamOp]:
    """Return the operations of all passes."""
    ops = [StreamOp(POST, peer) for peer in program.contacts]
    ops += [StreamOp(SIGNAL, peer, 1) for peer in program.contacts]
    ops += [StreamOp(WAIT, peer, 1) for peer in program.contacts]
    sent, received = [1] * program.size, [1] * program.size  # before this pass
    for number in range(program.passes):
        in_pass = {peer: count for step in program.steps for peer, count in step.signals}
        waited = {peer: count for step in program.steps for peer, count in step.waits}
        for index, step in enumerate(program.steps):
            ops += [StreamOp(WAIT, peer, received[peer] + count) for peer, count in step.waits]
            if step.moves:
                ops.append(StreamOp(LAUNCH, 0, number, index))
            ops += [StreamOp(SIGNAL, peer, sent[peer] + count) for peer, count in step.signals]
        for peer, count in in_pass.items():
            sent[peer] += count
        for peer, count in waited.items():
            received[peer] += count
    return ops


def pack_stream_ops(ops: list[StreamOp]) -> bytes:
    """Return the operations as words."""
    return struct.pack(f"<{4 * len(ops)}I", *(word for op in ops for word in op))


def unpack_stream_ops(packed: bytes) -> list[StreamOp]:
    """Return the operations of these words."""
    return [StreamOp(*words) for words in struct.iter_unpack("<4I", packed)]
