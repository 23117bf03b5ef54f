"""An average is a sum divided by the number of ranks, with the bits of the player."""

from __future__ import annotations

import numpy as np
import pytest

from arrays import DTYPES, bits, dtype_of, some_bits, some_numbers
from unisono import _engine
from unisono.player.reduction import finished

FLOATS = [name for name in DTYPES if dtype_of(name).kind not in "iub"]
SIZES = (1, 2, 3, 5, 6, 7, 8, 13, 64, 100, 447)


def sums(name: str, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return possible sums: any numbers, with the canonical NaN that every reduction gives."""
    values = np.concatenate([some_bits(name, length // 2, rng), some_numbers(name, length - length // 2, rng)])
    nan = complex(np.nan, np.nan) if values.dtype.kind == "c" else np.nan
    with np.errstate(all="ignore"):
        return np.where(np.isnan(values), np.asarray(nan, values.dtype), values)


@pytest.mark.parametrize("variant", _engine.variants())
@pytest.mark.parametrize("name", FLOATS)
def test_an_average_has_the_bits_of_the_player(name, variant):
    rng = np.random.default_rng(0)
    for length in (0, 1, 3, 64, 257, 5_003):
        for size in SIZES:
            total = sums(name, length, rng)
            with np.errstate(all="ignore"):
                wanted = bits(finished("avg", total, size))
            out = np.empty_like(total)
            _engine.divide(name, out.view(np.uint8), total.view(np.uint8), size, variant)
            assert bits(out) == wanted, (length, size)
            _engine.divide(name, total.view(np.uint8), total.view(np.uint8), size, variant)
            assert bits(total) == wanted, (length, size)


@pytest.mark.parametrize("name", sorted(set(DTYPES) - set(FLOATS)))
def test_integers_and_booleans_have_no_average(name):
    array = np.zeros(16, np.uint8)
    with pytest.raises(ValueError, match=f"dividing has no meaning for {name}"):
        _engine.divide(name, array, array, 2, "")


@pytest.mark.parametrize("lengths", [(4, 8), (6, 6)])
def test_arrays_of_different_or_odd_lengths_are_rejected(lengths):
    out, array = (np.zeros(length, np.uint8) for length in lengths)
    with pytest.raises(ValueError, match="expected two arrays of equal length, in whole elements"):
        _engine.divide("float32", out, array, 2, "")
