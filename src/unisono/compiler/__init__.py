"""Turns one rank's program into the engine's instructions.

In the order of the work: ``routes`` assigns a channel to each message, ``lengths`` a length to each slot, and
``buffer_parts`` a part of a buffer to each chunk; ``fusing`` merges instructions, ``dead_stores`` removes stores that
are never read, ``lower`` does all of this, ``call_layout`` adds the sizes of a call and cuts it into segments, and
``traffic`` counts the bytes that a call sends.
"""

from unisono.compiler.call_layout import CallLayout, CodecBlock, Lengths, lay_out_call
from unisono.compiler.hosts import Hosts
from unisono.compiler.instructions import BufferPart, Instruction, Lowered
from unisono.compiler.lower import lower

__all__ = [
    "BufferPart",
    "CallLayout",
    "CodecBlock",
    "Hosts",
    "Instruction",
    "Lengths",
    "Lowered",
    "lay_out_call",
    "lower",
]
