"""The five ops of a rank.

*Chunk*: a number that names one slot in the rank's row of slots. Wherever an op takes a chunk it also takes
a ``range`` or a sequence of chunk numbers; they then travel together, as one message.

========================  ==========================================================================
``send(chunk, dst=)``     put the content of the slot into the channel to rank ``dst``
``recv(chunk, src=)``     overwrite the slot with the next message from rank ``src``
``recv_reduce(...)``      add the next message from rank ``src`` to the slot
``copy(chunk, to=)``      overwrite slot ``to`` with slot ``chunk`` of this rank
``combine(chunk, into=)`` add slot ``chunk`` of this rank to slot ``into``
========================  ==========================================================================

"Add" stands for the reduction of the call: sum, product, max, min.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

# The slot of an op, or several that travel together.
Chunks: TypeAlias = "int | Sequence[int]"

SEND: Final = "send"
RECV: Final = "recv"
RECV_REDUCE: Final = "recv_reduce"
COPY: Final = "copy"
COMBINE: Final = "combine"

# The word between the chunk and the other side, in text and in messages.
LINK: Final = {SEND: "to", RECV: "from", RECV_REDUCE: "from", COPY: "to", COMBINE: "into"}


class Op(NamedTuple):
    """One op: its kind, its chunks, and the other side: a rank, or slots of this rank."""

    kind: str
    chunks: Chunks
    other: Chunks

    @property
    def is_local(self) -> bool:
        """Whether the op stays on this rank: then ``other`` names slots, not a rank."""
        return self.kind == COPY or self.kind == COMBINE

    def __str__(self) -> str:
        return self.text(longest=100)

    def text(self, longest: int | None = None) -> str:
        """Write the op as a sentence; with ``longest``, only the first of very many chunks."""
        link = LINK.get(self.kind, "?")
        return f"{self.kind} {format_chunks(self.chunks, longest)} {link} {format_chunks(self.other, longest)}"


# A step in normal form: the ops that happen together, sends first.
Step: TypeAlias = "tuple[Op, ...]"

# Programs make ops by the million: this saves the call of Op(...).
new_op = tuple.__new__


def send(chunk: Chunks, *, dst: int) -> Op:
    """Send ``chunk``, a number or several, to rank ``dst``, as it was before this step."""
    return new_op(Op, (SEND, chunk, dst))


def recv(chunk: Chunks, *, src: int) -> Op:
    """Overwrite ``chunk``, a number or several, with the next message from rank ``src``."""
    return new_op(Op, (RECV, chunk, src))


def recv_reduce(chunk: Chunks, *, src: int) -> Op:
    """Add the next message from rank ``src`` to ``chunk``, a number or several."""
    return new_op(Op, (RECV_REDUCE, chunk, src))


def copy(chunk: Chunks, *, to: Chunks) -> Op:
    """Overwrite slot ``to`` of this rank with slot ``chunk``; both are a number or several."""
    return new_op(Op, (COPY, chunk, to))


def combine(chunk: Chunks, *, into: Chunks) -> Op:
    """Add slot ``chunk`` of this rank to slot ``into``; both are a number or several."""
    return new_op(Op, (COMBINE, chunk, into))


def listed(chunks: Chunks) -> Sequence[int]:
    """Return the chunk numbers as a sequence, also when there is only one."""
    return (chunks,) if isinstance(chunks, int) else chunks


def count(chunks: Chunks) -> int:
    """Return the number of chunks."""
    return 1 if isinstance(chunks, int) else len(chunks)


def format_chunks(chunks: Chunks, longest: int | None = None) -> str:
    """Write chunk numbers as ranges: ``4``, ``0-3``, ``0-3,6,8-9``; no more than ``longest`` of them."""
    if not isinstance(chunks, Sequence) or isinstance(chunks, str):
        try:
            return str(chunks)  # one chunk, or an invalid value that is about to be refused
        except Exception:  # a value that cannot be printed
            return "?"
    if type(chunks) is range and chunks.step == 1 and chunks:
        return f"{chunks[0]}-{chunks[-1]}" if chunks[0] != chunks[-1] else str(chunks[0])
    runs: list[list[int]] = []
    more = ""
    for position, chunk in enumerate(chunks):
        if position == longest:
            more = ",..."
            break
        if runs and isinstance(chunk, int) and chunk == runs[-1][1] + 1:
            runs[-1][1] = chunk
        else:
            runs.append([chunk, chunk])
    text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
    return text + more or "nothing"
