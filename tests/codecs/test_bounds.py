"""The stated bounds hold, for one rounding and for the sum of a ring, and are nearly reached."""

from __future__ import annotations

import numpy as np
import pytest

from floats import of_every_kind, round_trip
from unisono import codecs
from unisono.codecs.formats import BLOCK, FORMATS

KINDS = ["normal", "heavy-tailed", "lognormal", "constant", "zeros of both signs", "subnormal"]


def block_largest(values: np.ndarray) -> np.ndarray:
    """Return, for each element, the largest magnitude in its codec block."""
    return np.repeat(np.abs(values).reshape(-1, BLOCK).max(axis=1), BLOCK)


@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_one_rounding_stays_within_its_bound(name, stochastic):
    codec = codecs.Codec(name, stochastic=stochastic, seed=1)
    for kind, values in of_every_kind(32_000).items():
        usable = np.isfinite(values) & (np.abs(values) <= codec.format.largest)
        values = np.where(usable, values, 0)
        error = np.abs(round_trip(values, codec).astype(np.float64) - values)
        assert (error <= codecs.rounding_error(codec, np.abs(values), block_largest(values))).all(), kind


@pytest.mark.parametrize("name", FORMATS)
def test_the_bound_of_one_rounding_is_nearly_reached(name):
    values = np.random.default_rng(0).uniform(-1, 1, 320_000).astype(np.float32)
    error = np.abs(round_trip(values, codecs.find(name)).astype(np.float64) - values)
    share = error / codecs.rounding_error(name, np.abs(values), block_largest(values))
    # The scale of a codec block is known only to a factor of two, which is the whole error of int8.
    assert share.max() > (0.85 if name != "int8" else 0.45)


def ring_sum(inputs: list[np.ndarray], codec: codecs.Codec) -> np.ndarray:
    """Return the result of a ring for a chunk that starts on rank 0: encoded before each hop, and at the end."""
    total = inputs[0]
    for other in inputs[1:]:
        total = round_trip(total, codec) + other
    return round_trip(total, codec)


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_the_sum_of_a_ring_stays_within_its_bound(name, stochastic, ranks):
    codec = codecs.Codec(name, stochastic=stochastic, seed=1)
    for kind in KINDS:
        inputs = [of_every_kind(6_400, seed)[kind] for seed in range(ranks)]
        if name == "fp16":
            inputs = [np.clip(values, -8_000, 8_000) for values in inputs]  # fp16 saturates beyond 65504
        error = np.abs(
            ring_sum(inputs, codec).astype(np.float64) - sum(values.astype(np.float64) for values in inputs)
        )
        # Element by element, from the exact partial sums.
        partial = np.cumsum([values.astype(np.float64) for values in inputs], axis=0)
        largest = [block_largest(values) for values in partial]
        assert (error <= codecs.sum_error(codec, list(np.abs(partial)), largest)).all(), kind
        # The simple bound takes one number per codec block and is never smaller.
        simple = codecs.error_bound(codec, ranks, sum(block_largest(values.astype(np.float64)) for values in inputs))
        assert (codecs.sum_error(codec, list(np.abs(partial)), largest) <= simple).all(), kind


def test_the_bound_of_eight_ranks_and_e4m3_agrees_with_the_documentation():
    assert float(codecs.error_bound("fp8_e4m3", 8, 1.0)) == pytest.approx((1 + 1 / 16) ** 15 - 1, rel=1e-5)
    in_a_ring = codecs.error_bound("fp8_e4m3", 8, 1.0, roundings=8)
    assert float(in_a_ring) == pytest.approx((1 + 1 / 16) ** 8 - 1, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "typical"),
    [("fp16", 0.0004), ("bf16", 0.0035), ("fp8_e4m3", 0.056), ("fp8_e5m2", 0.11), ("int8", 0.016)],
)
def test_typical_errors_of_eight_ranks_agree_with_the_documentation(name, typical):
    inputs = [of_every_kind(64_000, seed)["normal"] for seed in range(8)]
    exact = sum(values.astype(np.float64) for values in inputs)
    error = ring_sum(inputs, codecs.find(name)) - exact
    assert np.sqrt((error**2).mean() / (exact**2).mean()) == pytest.approx(typical, rel=0.15)
