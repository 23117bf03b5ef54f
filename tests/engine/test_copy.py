"""Both copy strategies copy exactly the given bytes, from and to any address."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unisono import _engine


@settings(max_examples=300, deadline=None)
@given(
    length=st.one_of(st.integers(0, 400), st.integers(0, 100_000)), to=st.integers(0, 70), start=st.integers(0, 70),
    seed=st.integers(0, 2**32), writes_past_caches=st.booleans(),
)  # fmt: skip
def test_every_byte_is_copied_and_no_other_is_written(length, to, start, seed, writes_past_caches):
    source = np.random.default_rng(seed).integers(0, 256, length + 100, dtype=np.uint8)
    out = np.full(length + 200, 77, np.uint8)
    wanted = out.copy()
    wanted[to : to + length] = source[start : start + length][:length]
    _engine.copy(out[to : to + length], source[start : start + length], writes_past_caches)
    assert np.array_equal(out, wanted)


def test_arrays_of_different_lengths_are_rejected():
    with pytest.raises(ValueError, match="expected two arrays of equal length"):
        _engine.copy(np.zeros(4, np.uint8), np.zeros(5, np.uint8), True)
