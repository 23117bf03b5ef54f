"""Without the engine, codecs produce the same bytes and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from floats import of_every_kind
from unisono import _engine, codecs
from unisono.codecs import reference_loops

KINDS = of_every_kind(70_001)  # more than a window of top-k


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "stochastic"),
    [(name, False) for name in ("fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8")]
    + [(name, True) for name in ("fp8_e4m3", "fp8_e5m2", "int8")],
)
def test_the_loops_in_numpy_give_the_bytes_of_the_engine(name, stochastic, kind):
    found, expected = [], []
    for loops, results in ((reference_loops, found), (_engine, expected)):
        source = KINDS[kind].copy().view(np.uint8)
        wire = np.zeros(_engine.encoded_bytes(name, KINDS[kind].size), np.uint8)
        loops.encode(name, wire, source, stochastic, 7, first=0, variant="")
        numbers = np.zeros_like(source)
        loops.decode(name, numbers, wire, "")
        loops.encode_rounding_source(name, wire, source, stochastic, 7, first=0, variant="")
        results += [wire, numbers, source]
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one.view(np.uint8), other.view(np.uint8))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", [0, 1, 700, 35_000, 70_001])
def test_the_loops_in_numpy_keep_the_elements_that_the_engine_keeps(kept, kind):
    values = KINDS[kind].view(np.uint8)
    results = []
    for loops in (reference_loops, _engine):
        wire = np.zeros(_engine.topk_bytes(KINDS[kind].size, kept), np.uint8)
        loops.encode_topk(wire, values, kept)
        total = KINDS[kind].copy().view(np.uint8)
        loops.add_topk(total, wire, kept)
        results.append((wire, total))
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(results[0][1].view(np.float32), results[1][1].view(np.float32), equal_nan=True)


def test_the_loops_in_numpy_refuse_the_bytes_of_another_wire():
    wire = codecs.encode(np.arange(70_000, dtype=np.float32), "topk:0.01")
    counts, positions = slice(0, 8), slice(8, 8 + 2 * 700)  # all 700 elements are in the second window of two
    for damaged, dtype, value, complaint in (
        (counts, np.uint32, 701, "more than k elements"),
        (counts, np.uint32, 0, "fewer than k elements"),
        (positions, np.uint16, 65535, "past the end of its window"),
    ):
        broken = wire.copy()
        broken[damaged].view(dtype)[:] = value
        with pytest.raises(ValueError, match=complaint):
            reference_loops.add_topk(np.zeros(280_000, np.uint8), broken, 700)
