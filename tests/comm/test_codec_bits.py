"""With a codec, real processes compute the same bits as `play` with the same rounding of sent chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.comm.test_against_play import SIZES, WITH_DATA, compare
from unisono.algorithms import BUILT_IN, catalogue
from unisono.collectives import barrier

CODECS = ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8"]
LENGTHS = [0, 1, 31, 32, 33, 1000, 100_003]
OPS = ["sum", "avg", "prod", "max", "min"]


@st.composite
def cases(draw):
    size = draw(st.sampled_from(SIZES))
    collective = draw(st.sampled_from(WITH_DATA))
    algorithm = draw(st.sampled_from(catalogue.algorithms_serving(collective, size)))
    op = draw(st.sampled_from(OPS)) if collective.reduces else None
    root = draw(st.integers(0, size - 1)) if collective.rooted else None
    length = draw(st.sampled_from(LENGTHS[:-1])) * (size if collective.blocked else 1)
    return size, algorithm, length, "float32", op, root, draw(st.integers(0, 1000)), draw(st.sampled_from(CODECS))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases())
def test_real_processes_round_like_play(pools, case):
    """The numbers include NaN and infinities; inputs that are not results are unchanged."""
    size, *rest = case
    with np.errstate(all="ignore"):
        compare(pools[size], *rest)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("algorithm", [a for a in BUILT_IN if a.collective is not barrier], ids=str)
def test_every_algorithm_on_long_odd_vectors_with_a_codec(pools, algorithm, size):
    if not algorithm.can_serve(size):
        pytest.skip(f"not declared for {size} ranks")
    collective = algorithm.collective
    codec = CODECS[(BUILT_IN.index(algorithm) + size) % len(CODECS)]
    length = 100_003 if not collective.blocked else 20_011 * size
    root = size - 1 if collective.rooted else None
    with np.errstate(all="ignore"):
        compare(pools[size], algorithm, length, "float32", "sum" if collective.reduces else None, root, 7, codec)
