"""How wrong a compressed result can be: bounds that hold for every input, and why.

*One rounding.* Between 2**e and 2**(e + 1) the numbers of a format with m bits of mantissa are 2**(e - m)
apart, so the nearest one is at most half of this away, which is at most 2**-(m + 1) of the element:
``relative_error``. Near zero they are one quantum apart, times the scale s of the block: ``absolute_error *
s``. One of the two holds. Stochastic rounding may take the farther neighbour: both are twice as large. The
scale is the smallest at which the block's largest element A fits; at half of it A would have been above the
largest code L, so s < 2 A / L (or s is the smallest scale, 2**-126). For int8, whose steps are all equal,
that is A / 127; for the others the relative error is what counts, 2**-4 for fp8_e4m3 and 2**-3 for fp8_e5m2,
and only elements below about A / 30,000 are bounded by a part of A.

*A sum over ranks.* A ring rounds a chunk p times with p ranks: it travels p - 1 hops, encoded anew before
each, and the complete sum is rounded once more before it is shared; from then on the same bytes are passed
on. Any other order in which each rank's numbers are added in once has p - 1 messages into the sum of a chunk
and a last one out of it, so p roundings again. (An order that rounds more often has as many
more terms: give them all to ``sum_error``.) Let S(k) bound the k-th partial sum that is rounded, and E(k)
the error by then. The number that is rounded is at most S(k) + E(k) in magnitude, after an addition in
float32, which rounds by 2**-24 of it. So the error grows by at most rounding(S(k) + E(k)), and with S(k) <= S
for all k, and r the relative error, to first order p * r * S, exactly S * ((1 + r)**p - 1): for 8 ranks and
fp8_e4m3 0.62 S. Errors of nearest rounding have all signs, and are typically as large as the square root of p
roundings.

The bounds hold while nothing saturates, ``codec.format.largest``, and where nothing is infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unisono.codecs.codec import Codec, find
from unisono.codecs.formats import SMALLEST_SCALE

Doubles = NDArray[np.float64]
ADDITION = 2.0**-24  # of the result, in float32


def rounding_error(codec: str | Codec, magnitude: ArrayLike, largest: ArrayLike | None = None) -> Doubles:
    """Return the most that encoding changes an element of a magnitude, in a block whose largest is given.

    Without ``largest`` the element is the largest itself. Arrays give bounds element by element.
    """
    codec, magnitudes = find(codec), np.asarray(magnitude, np.float64)
    scales: Any = 1.0
    if codec.format.block is not None:
        top = magnitudes if largest is None else np.asarray(largest, np.float64)
        scales = np.maximum(2 * top / codec.format.limit, 2.0**SMALLEST_SCALE)
    bound: Doubles = np.maximum(codec.relative_error * magnitudes, codec.absolute_error * scales)
    return bound


def sum_error(codec: str | Codec, sums: Sequence[ArrayLike], largest: Sequence[ArrayLike] | None = None) -> Doubles:
    """Return the most that a sum is wrong after its partial sums were rounded one after the other.

    ``sums`` are the magnitudes of the partial sums without error, of an element or of many, in the order of
    the hops; the last one is the complete sum. ``largest`` are the largest of their blocks; without it each
    is the largest itself.
    """
    codec = find(codec)
    error: Any = np.float64(0)
    block_error: Any = np.float64(0)
    for hop, (partial, top) in enumerate(zip(sums, sums if largest is None else largest, strict=True)):
        magnitude, block = np.asarray(partial) + error, np.asarray(top) + block_error
        if hop:  # an addition came before
            error, magnitude = error + ADDITION * magnitude, magnitude * (1 + ADDITION)
            block_error, block = block_error + ADDITION * block, block * (1 + ADDITION)
        error = error + rounding_error(codec, magnitude, block)
        block_error = block_error + rounding_error(codec, block, block)
    return np.asarray(error)


def error_bound(codec: str | Codec, ranks: int, largest: ArrayLike) -> Doubles:
    """Return the most that an element of an all-reduce is wrong.

    ``largest`` bounds the magnitudes of all partial sums in the element's block, for instance the sum over
    the ranks of the largest magnitude that each has in it.
    """
    return sum_error(codec, [largest] * ranks)
