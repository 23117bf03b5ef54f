"""Encodes and decodes in plain numpy: slow, and the reference that the engine's loops are compared with.

It computes in float64, where every step but the rounding itself is exact. The rules are those of
``engine/include/unisono/wire.hpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.codecs.formats import BLOCK, FORMATS, LARGEST_FLOAT, SMALLEST_SCALE, Format

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Words = NDArray[np.uint32]


@np.errstate(all="ignore")
def encode(values: Floats, name: str, *, stochastic: bool = False, seed: int = 0, first: int = 0) -> Bytes:
    """Return the wire of a one-dimensional float32 array."""
    form = FORMATS[name]
    dice = roll_dice(seed, first, len(values)) if stochastic else None
    if form.block is None:
        return _codes(values.astype(np.float64), form, dice).astype(np.uint16).view(np.uint8)
    exponents = _scale_exponents(values, form, stochastic)
    # In float32, as in the engine: a number too small for float32 is far too small for any code but 0.
    scaled = values * np.float32(2) ** -np.repeat(exponents, BLOCK)[: len(values)].astype(np.float32)
    codes = _codes(scaled.astype(np.float64), form, dice)
    return np.concatenate([exponents + LARGEST_FLOAT, codes]).astype(np.uint8)


@np.errstate(all="ignore")
def decode(wire: Bytes, name: str, n: int) -> Floats:
    """Return the n elements of a wire."""
    form = FORMATS[name]
    if form.block is None:
        return _numbers(wire.view(np.uint16).astype(np.int64), form).astype(np.float32)
    blocks = -(-n // BLOCK)
    scales = 2.0 ** (np.repeat(wire[:blocks], BLOCK)[:n].astype(np.float64) - LARGEST_FLOAT)
    return (_numbers(wire[blocks:].astype(np.int64), form) * scales).astype(np.float32)


def _scale_exponents(values: Floats, form: Format, stochastic: bool) -> NDArray[np.int64]:
    """Return, for each codec block, the smallest exponent at which no finite element is rounded above the limit."""
    finite = np.where(np.isfinite(values), np.abs(values), 0).astype(np.float64)
    padded = np.zeros(-(-len(values) // BLOCK) * BLOCK)
    padded[: len(values)] = finite
    largest = padded.reshape(-1, BLOCK).max(axis=1, initial=0)
    exponents = _exponents(largest) - form.exponent
    scaled = largest * 2.0**-exponents
    exponents += (scaled if stochastic else _rounded(scaled, form, None)) > form.limit
    return np.clip(exponents, SMALLEST_SCALE, LARGEST_FLOAT - form.exponent)


def _exponents(magnitudes: Doubles) -> NDArray[np.int64]:
    """Return e with 2**e <= magnitude < 2**(e + 1); for zero, an exponent below all others."""
    return np.where(magnitudes > 0, np.frexp(magnitudes)[1] - 1, -200).astype(np.int64)


def _smallest_normal(form: Format) -> float:
    assert form.mantissa is not None
    return form.quantum * 2.0**form.mantissa


def _quanta(magnitudes: Doubles, form: Format) -> Doubles:
    """Return the distance between neighbouring numbers of the format, at each magnitude."""
    if form.mantissa is None:
        return np.full_like(magnitudes, form.quantum)
    quanta: Doubles = np.maximum(2.0 ** (_exponents(magnitudes) - form.mantissa), form.quantum)
    return quanta


def _rounded(magnitudes: Doubles, form: Format, dice: Words | None) -> Doubles:
    """Return the number of the format nearest to each magnitude or, with dice, one of the two neighbours.

    The limit of the format is ignored.
    """
    if dice is None:
        quanta = _quanta(magnitudes, form)
        nearest: Doubles = np.rint(magnitudes / quanta) * quanta
        return nearest
    assert form.mantissa is not None
    lift = np.where(magnitudes < _smallest_normal(form), _smallest_normal(form), 0)
    # A float32 has 24 bits: the lower bits of a small number are rounded away before the random bits are added.
    lifted = (magnitudes + lift).astype(np.float32).astype(np.float64)
    quanta = _quanta(lifted, form)
    kept_bits = 23 - form.mantissa
    chosen: Doubles = np.floor(lifted / quanta + (dice >> (32 - kept_bits)) / 2.0**kept_bits) * quanta - lift
    return chosen


def _codes(values: Doubles, form: Format, dice: Words | None) -> NDArray[np.int64]:
    nan = np.isnan(values) | (np.isinf(values) & (not form.infinite))
    signs = np.signbit(values)
    magnitudes = np.minimum(np.where(np.isfinite(values), np.abs(values), 0), form.limit)
    if form.mantissa is None:
        return np.where(nan, 0x80, _whole_numbers(np.where(signs, -magnitudes, magnitudes), dice) & 0xFF)
    numbers = np.minimum(_rounded(magnitudes, form, dice), form.limit)
    quanta = _quanta(numbers, form)
    # The exponent field is the number of doublings of the quantum; a full mantissa carries into it.
    codes = (np.log2(quanta / form.quantum) * 2**form.mantissa + numbers / quanta).astype(np.int64)
    codes = np.where(np.isinf(values), _infinity(form), codes) | (signs.astype(np.int64) << (form.bits - 1))
    return np.where(nan, _nan(form), codes)


def _whole_numbers(values: Doubles, dice: Words | None) -> NDArray[np.int64]:
    if dice is None:
        return np.rint(values).astype(np.int64)
    fixed: Doubles = np.trunc(values * 2.0**24)
    return np.floor((fixed + (dice >> 8)) / 2.0**24).astype(np.int64)


def _infinity(form: Format) -> int:
    """Return the code of infinity: all bits of the exponent are set. Not used for formats without an infinity."""
    assert form.mantissa is not None
    return (1 << (form.bits - 1)) - (1 << form.mantissa)


def _nan(form: Format) -> int:
    assert form.mantissa is not None
    return _infinity(form) | 1 << (form.mantissa - 1) if form.infinite else (1 << (form.bits - 1)) - 1


def _numbers(codes: NDArray[np.int64], form: Format) -> Doubles:
    if form.mantissa is None:
        return np.where(codes == 0x80, np.nan, np.where(codes > 0x80, codes - 256, codes))
    magnitudes = codes & ((1 << (form.bits - 1)) - 1)
    exponents = magnitudes >> form.mantissa
    units = (magnitudes & ((1 << form.mantissa) - 1)) + np.where(exponents > 0, 1 << form.mantissa, 0)
    numbers = units * form.quantum * 2.0 ** np.maximum(exponents - 1, 0)
    if form.infinite:
        numbers = np.where(magnitudes == _infinity(form), np.inf, numbers)
        nan = magnitudes > _infinity(form)
    else:
        nan = magnitudes == _nan(form)
    numbers = np.where(codes >> (form.bits - 1), -numbers, numbers)
    return np.where(nan, np.nan, numbers)


def roll_dice(seed: int, first: int, n: int) -> Words:
    """Return 32 random bits for each of the n elements from ``first`` on (engine/src/loops/stochastic_rng.hpp)."""
    shift = _mixed(np.array([seed & 0xFFFFFFFF], np.uint32), np.uint32(0))
    key = _mixed(np.array([seed >> 32], np.uint32), shift)
    index = ((np.arange(n, dtype=np.uint64) + np.uint64(first)) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return _mixed(index + shift, key)


def _mixed(x: Words, key: Any) -> Words:
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = x ^ key
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))
