"""Float32 arrays of every kind, for the tests of codecs."""

from __future__ import annotations

import numpy as np

from unisono.codecs import Codec, decode, encode


def round_trip(values: np.ndarray, codec: str | Codec) -> np.ndarray:
    """Return an array encoded and decoded once."""
    return decode(encode(values, codec), codec, values.size)


def of_every_kind(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return arrays of n elements by the name of their kind."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(n)
    scales = np.repeat(10.0 ** rng.uniform(-44, 38, n // 32 + 1), 32)[:n]  # a different one in every codec block
    with np.errstate(all="ignore"):
        kinds = {
            "random bits": rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32),
            "normal": normal,
            "heavy-tailed": rng.standard_cauchy(n),
            "lognormal": rng.lognormal(0, 3, n) * np.sign(normal),
            "constant": np.full(n, 0.3),
            "zeros of both signs": np.copysign(0, normal),
            "subnormal": normal * 1e-39,
            "the largest": np.clip(normal, -1, 1) * 3.4028e38,
            "every exponent": normal * scales,
            "with infinities": np.where(rng.random(n) < 0.1, np.copysign(np.inf, normal), normal),
            "with NaN": np.where(rng.random(n) < 0.1, np.nan, normal),
        }
        return {kind: values.astype(np.float32) for kind, values in kinds.items()}
