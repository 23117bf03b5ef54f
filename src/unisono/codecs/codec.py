"""The record of a codec: how an array is represented while it travels. ``codec=`` takes a record or a name.

``find("fp8_e4m3")`` and ``Codec("fp8_e4m3")`` are the same; ``Codec("fp8_e4m3", stochastic=True, seed=1)``
rounds stochastically; ``find("topk:0.01")`` keeps the largest hundredth.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from unisono.codecs import messages
from unisono.codecs.formats import FORMATS, Format
from unisono.errors import UsageError
from unisono.message import listed

TOPK_BLOCK = 65536  # elements of a window; a position in it takes 16 bits


@dataclass(frozen=True)
class Codec:
    """The representation of float32 numbers while they travel.

    ``name`` is "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8" or "topk:F", where F is the fraction of the elements
    that are sent. ``stochastic`` (default: False) rounds up or down at random, to the nearer neighbour more often, so
    that the expected value is the number itself; the same ``seed`` (default 0) gives the same bits again. Every codec
    is idempotent, however it rounds: encoding a decoded array again changes nothing. Therefore ranks that forward
    what they received agree. UsageError is raised if there is no such codec. For example::

        comm.all_reduce(gradient, codec=Codec("fp8_e4m3", stochastic=True, seed=1))
    """

    name: str
    _: KW_ONLY
    stochastic: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or (self.name not in FORMATS and _fraction(self.name) is None):
            expected = messages.NAMES(formats=listed(FORMATS))
            raise UsageError(messages.NO_CODEC(name=repr(self.name), expected=expected))
        if self.stochastic and self.is_topk:
            raise UsageError(messages.NOT_STOCHASTIC(name=repr(self.name), formats=listed(FORMATS)))
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise UsageError(messages.BAD_SEED(seed=repr(self.seed)))

    def __str__(self) -> str:
        return f"{self.name}, stochastic, seed {self.seed}" if self.stochastic else self.name

    @property
    def is_topk(self) -> bool:
        """Whether the codec sends only the largest elements, with their positions."""
        return self.name not in FORMATS

    @property
    def format(self) -> Format:
        """The format of the numbers on the wire; those that top-k keeps are bf16."""
        return FORMATS["bf16" if self.is_topk else self.name]

    def kept(self, n: int) -> int:
        """Return the number of elements that are sent of ``n``: all of them, or those that top-k keeps."""
        fraction = _fraction(self.name)
        return n if fraction is None else math.ceil(fraction * n)

    def wire_bytes(self, n: int) -> int:
        """Return the number of bytes that ``n`` elements take on the wire."""
        if not self.is_topk:
            return self.format.wire_bytes(n)
        return 4 * -(-n // TOPK_BLOCK) + 4 * self.kept(n)

    @property
    def relative_error(self) -> float:
        """The largest change that one rounding makes to an element, relative to the element (see bounds.py)."""
        if self.is_topk:
            return 1.0  # what is not kept is lost
        mantissa = self.format.mantissa
        return 0.0 if mantissa is None else 2.0**-mantissa / self._halves

    @property
    def absolute_error(self) -> float:
        """The largest change that one rounding makes to a small element, in units of the scale if there is one."""
        return self.format.quantum / self._halves

    @property
    def _halves(self) -> int:
        """The divisor of a step that bounds the change: 2 where the nearest number is taken, else 1."""
        return 1 if self.stochastic else 2

    def describe(self) -> str:
        """Return a summary of the codec, one property per line."""
        lines = [
            f"codec {self}",
            f"  bytes: {self.wire_bytes(2**20) / 2**22:.4f} of float32",
            f"  error: at most the larger of {self.relative_error:g} of the element and {self.absolute_error:g}"
            + ("" if self.format.block is None else f" of the scale of its {self.format.block} elements"),
            f"  too large: becomes {self.format.largest:.6g}",
            f"  infinity: {'kept' if self.format.infinite else 'becomes NaN'}; NaN: kept",
        ]
        if self.is_topk:
            lines[2] = f"  error: what is not kept is lost; what is kept is rounded to {self.format.name}"
        return "\n".join(lines)


def _fraction(name: str) -> Fraction | None:
    """Return F of topk:F, exactly as written; None for any other name."""
    kind, _, number = name.partition(":")
    try:
        fraction = Fraction(number) if kind == "topk" else Fraction(0)
    except (ValueError, ZeroDivisionError):
        return None
    return fraction if 0 < fraction <= 1 else None


def find(codec: str | Codec) -> Codec:
    """Return the codec that ``codec`` names; a Codec is returned unchanged. UsageError is raised if there is none."""
    return codec if isinstance(codec, Codec) else Codec(codec)
