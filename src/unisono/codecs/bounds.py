"""Bounds on the error of a compressed result that hold for every input, with their proof.

*One rounding.* Between 2**e and 2**(e + 1) the numbers of a format with m bits of mantissa are 2**(e - m)
apart, so the nearest one is at most half of this away, which is at most 2**-(m + 1) of the element:
``relative_error``. Near zero they are one quantum apart, times the scale s of the block: ``absolute_error *
s``. One of the two holds. Stochastic rounding may take the farther neighbour: both are twice as large. The
scale is the smallest at which the block's largest element A fits; at half of it A would have been above the
largest code L, so s < 2 A / L (or s is the smallest scale, 2**-126). For int8, whose steps are all equal,
that is A / 127; for the others the relative error is what counts, 2**-4 for fp8_e4m3 and 2**-3 for fp8_e5m2,
and only elements below about A / 30,000 are bounded by a part of A.

*A sum over ranks.* The verifier writes the result of an algorithm as an expression of inputs, additions and
roundings R, such as R(R(R(a0)+a1)+a2) for a chunk of a ring, and counts the roundings
(``unisono.verifier.count_roundings``). A ring of p ranks has p, recursive doubling on 8 ranks 8 + 4 + 2 = 14, and
nothing has more than 2p - 1: an expression of p inputs has p - 1 additions, so 2p - 1 parts, and R(R(x)) = R(x).

Let S bound the magnitude of every part of the expression without its roundings, the inputs and the partial sums, in
the element's block. Let E be the error of a part, and M = S + E, so that M bounds what is computed. Then

* a rounding makes of M at most M + rounding(M), where rounding(M) grows with M: max((1 + r) M, M + c);
* an addition of parts with errors E1 and E2 has error E1 + E2, before float32 rounds it: (1 + u)(S + E1 + E2), where
  u = 2**-24.

Both add the more, the larger M is. So E1 + E2 is no more than the error of all roundings and additions of both parts,
done one after the other on one number: those of the second part add at least as much to S + E1 as they do to S. By
induction the error of an expression is at most that of all its roundings and additions in some order. The order with
the roundings first is the worst, as (1 + u) max((1 + r) M, M + c) >= max((1 + r)(1 + u) M, (1 + u) M + c). Therefore

    error <= (1 + u)**(p - 1) * R^n(S) - S,

where R^n is M -> max((1 + r) M, M + c), n times: S ((1 + r)**n - 1) for n roundings, n r S to first order. Errors of
nearest rounding have all signs, and are typically as large as the square root of n roundings. Top-k rounds nothing
but inputs, once each, and may lose all of one: p S.

The bounds hold while nothing saturates, ``codec.format.largest``, and where nothing is infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unisono.codecs import messages
from unisono.codecs.codec import Codec, find
from unisono.codecs.formats import SMALLEST_SCALE
from unisono.errors import UsageError

Doubles = NDArray[np.float64]
ADDITION = 2.0**-24  # of the result, in float32


def rounding_error(codec: str | Codec, magnitude: ArrayLike, largest: ArrayLike | None = None) -> Doubles:
    """Return the largest change that encoding with ``codec`` (or its name) makes to an element.

    ``magnitude`` is that of the element, and ``largest`` that of the largest element of its codec block; by default,
    that is the element itself. Arrays give bounds element by element.
    """
    codec, magnitudes = find(codec), np.asarray(magnitude, np.float64)
    scales: Any = 1.0
    if codec.format.block is not None:
        top = magnitudes if largest is None else np.asarray(largest, np.float64)
        scales = np.maximum(2 * top / codec.format.limit, 2.0**SMALLEST_SCALE)
    bound: Doubles = np.maximum(codec.relative_error * magnitudes, codec.absolute_error * scales)
    return bound


def sum_error(codec: str | Codec, sums: Sequence[ArrayLike], largest: Sequence[ArrayLike] | None = None) -> Doubles:
    """Return the largest error of a sum whose partial sums were rounded one after the other, as in a ring.

    ``codec`` is the codec or its name. ``sums`` are the magnitudes of the partial sums without error, of an element
    or of many, in the order of the hops; the last one is the complete sum. ``largest`` are the largest of their
    blocks; without it each is the largest itself.
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


def error_bound(codec: str | Codec, ranks: int, largest: ArrayLike, *, roundings: int | None = None) -> Doubles:
    """Return the largest error of an element of a sum over ``ranks`` ranks (all_reduce, reduce_scatter, reduce).

    ``codec`` is the codec or its name. ``largest`` bounds the magnitudes of all inputs and partial sums in the
    element's block, for instance the sum over the ranks of the largest magnitude that each has in it. ``roundings``
    is how many roundings feed a result: ``unisono.verifier.count_roundings(schedule)`` counts those of an algorithm.
    Without it the bound holds for every algorithm. An average has this error divided by the number of ranks, and that
    of a division in float32. UsageError is raised if ``ranks`` or ``roundings`` is out of range.
    """
    codec = find(codec)
    most = 2 * ranks - 1
    if type(ranks) is not int or ranks < 1:
        raise UsageError(messages.BAD_RANKS(ranks=repr(ranks)))
    if roundings is not None and not (type(roundings) is int and 0 <= roundings <= most):
        raise UsageError(messages.BAD_ROUNDINGS(roundings=repr(roundings), ranks=ranks, most=most))
    largest = np.abs(np.asarray(largest, np.float64))
    magnitude: Doubles = largest
    if codec.is_topk:
        magnitude = largest * (1 + ranks)
    else:
        for _ in range(most if roundings is None else roundings):
            magnitude = magnitude + rounding_error(codec, magnitude)
    return np.asarray(magnitude * (1 + ADDITION) ** (ranks - 1) - largest)
