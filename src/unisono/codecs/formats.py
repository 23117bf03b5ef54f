"""The number formats of the wire, as data. Formats differ in nothing but the fields declared here.

A *code* is the integer that represents an element on the wire. In formats with a codec block, the ``block`` elements
of each block share one *scale*, a power of two, and an element is the number of its code times the scale.
"""

from __future__ import annotations

from dataclasses import dataclass

BLOCK = 32  # elements that share a scale
SMALLEST_SCALE = -126  # exponents of two: the scale is a normal float32
LARGEST_FLOAT = 127  # the exponent of the largest float32


@dataclass(frozen=True)
class Format:
    """A format: the bits of its codes, and the numbers that they represent.

    ``mantissa`` is the number of bits behind the point, None where codes are whole numbers. The quantum is
    the distance between the numbers nearest to zero; everywhere else numbers are no further apart than 2 **
    -mantissa of themselves.
    """

    name: str
    bits: int
    mantissa: int | None
    block: int | None
    limit: float  # the largest code's number
    quantum: float
    infinite: bool  # whether there is an infinity

    @property
    def exponent(self) -> int:
        """The exponent of the limit: the largest e with 2**e <= limit."""
        return int(self.limit).bit_length() - 1

    @property
    def largest(self) -> float:
        """The largest number that the wire can represent; larger numbers become this one."""
        return self.limit if self.block is None else self.limit * 2.0 ** (LARGEST_FLOAT - self.exponent)

    def wire_bytes(self, n: int) -> int:
        """Return the number of bytes that n elements take on the wire."""
        scales = 0 if self.block is None else -(-n // self.block)
        return scales + n * self.bits // 8


FORMATS = {
    found.name: found
    for found in (
        Format("fp16", 16, 10, None, 65504.0, 2.0**-24, True),
        Format("bf16", 16, 7, None, (2 - 2.0**-7) * 2.0**127, 2.0**-133, True),
        Format("fp8_e4m3", 8, 3, BLOCK, 448.0, 2.0**-9, False),
        Format("fp8_e5m2", 8, 2, BLOCK, 57344.0, 2.0**-16, True),
        Format("int8", 8, None, BLOCK, 127.0, 1.0, False),
    )
}
