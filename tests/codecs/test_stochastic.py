"""Stochastic rounding is unbiased, reproducible with the same seed, and exact for representable numbers."""

from __future__ import annotations

import numpy as np
import pytest

from arrays import bits
from unisono import codecs
from unisono.codecs import reference
from unisono.codecs.formats import FORMATS

N = 100_000


def rounded(values: np.ndarray, name: str, seed: int) -> np.ndarray:
    codec = codecs.Codec(name, stochastic=True, seed=seed)
    return codecs.decode(codecs.encode(values, codec), name, values.size)


@pytest.mark.parametrize("value", [1.03, -0.7003, 1e-3, 2.0**-16 * 1.3])
@pytest.mark.parametrize("name", FORMATS)
def test_the_mean_of_many_roundings_is_the_number(name, value):
    values = np.full(N, value, np.float32)
    values[::32] = 1.0  # the largest of each codec block: it fixes the scale
    found = rounded(values, name, seed=1)[values != 1.0].astype(np.float64)
    down, up = found.min(), found.max()
    assert down <= np.float32(value) <= up
    # The result takes one of two values: five standard deviations of their mean.
    assert abs(found.mean() - np.float32(value)) <= 5 * (up - down) / 2 / np.sqrt(found.size) + 1e-12
    assert len(np.unique(found)) == (1 if up == down else 2)


@pytest.mark.parametrize("name", FORMATS)
def test_equal_seeds_give_equal_bits_and_different_seeds_different_ones(name):
    values = np.random.default_rng(0).standard_normal(1_000).astype(np.float32)
    assert bits(rounded(values, name, 7)) == bits(rounded(values, name, 7))
    assert bits(rounded(values, name, 7)) != bits(rounded(values, name, 8))
    assert bits(rounded(values, name, 7)) != bits(rounded(values, name, 7 + 2**32))


def test_the_random_bits_are_uniform_and_independent():
    dice = reference.roll_dice(3, 0, 2**16) / 2.0**32
    counts, _ = np.histogram(dice, 64, (0, 1))
    assert ((counts - 1024) ** 2 / 1024).sum() < 130  # chi-square with 63 degrees of freedom: 1 in a million
    for other in (
        np.roll(dice, 1),
        reference.roll_dice(4, 0, 2**16) / 2.0**32,
        reference.roll_dice(3 + 2**32, 0, 2**16) / 2.0**32,
    ):
        assert abs(np.corrcoef(dice, other)[0, 1]) < 0.02  # 5 / sqrt(2**16)


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_below_half_a_step_are_preserved_on_average(name):
    form = FORMATS[name]
    scale = 2.0**-form.exponent if form.block else 1.0  # of a codec block whose largest element is 1
    values = np.full(N, 0.1 * form.quantum * scale, np.float32)
    values[::32] = 1.0
    small = values != 1.0
    assert not codecs.decode(codecs.encode(values, name), name, N)[small].any()
    sent = rounded(values, name, 2)[small].astype(np.float64).sum()
    assert abs(sent / values[small].astype(np.float64).sum() - 1) < 0.1
