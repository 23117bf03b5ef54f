"""Turns one rank's program into the engine's instructions.

In the order of the work: ``routes`` says through which channel each message goes, ``lengths`` how long each slot is,
``places`` in which buffer a chunk lies, ``fusing`` makes one instruction of several, ``stores`` leaves out what
nobody reads, ``lower`` does all of it, ``plans`` adds the numbers of a call and cuts it into segments, and
``traffic`` says how many bytes it will send.
"""

from unisono.compiler.call_layout import Block, CallLayout, Lengths, lay_out_call
from unisono.compiler.instructions import Instruction, Lowered, Place
from unisono.compiler.lower import lower

__all__ = ["Block", "CallLayout", "Instruction", "Lengths", "Lowered", "Place", "lay_out_call", "lower"]
