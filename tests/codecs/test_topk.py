"""Top-k keeps exactly k elements, deterministically, and all ranks agree on the sum."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unisono
from arrays import bits, some_bits
from floats import of_every_kind, round_trip
from unisono import _engine, codecs
from unisono.errors import UsageError


def kept_by_sorting(values: np.ndarray, k: int) -> np.ndarray:
    """Return the array with all but the k largest magnitudes set to 0: NaN first, then by position."""
    magnitudes = values.view(np.uint32) & 0x7FFFFFFF
    order = np.lexsort((np.arange(len(values)), -magnitudes.astype(np.int64)))[:k]
    out = np.zeros_like(values)
    limit = np.float32(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    finite = np.isfinite(values[order])
    with np.errstate(all="ignore"):
        rounded = values[order].astype(ml_dtypes.bfloat16).astype(np.float32)
    out[order] = np.where(finite, np.clip(rounded, -limit, limit), values[order])
    return out


@pytest.mark.parametrize("fraction", ["0.001", "0.01", "0.1", "0.5", "1"])
def test_the_largest_elements_are_those_found_by_sorting(fraction):
    codec = codecs.find(f"topk:{fraction}")
    for kind, values in of_every_kind(200_003).items():
        wanted = kept_by_sorting(values, codec.kept(len(values)))
        assert np.array_equal(round_trip(values, codec.name), wanted, equal_nan=True), kind


@settings(max_examples=100, deadline=None)
@given(n=st.integers(0, 300), per_mille=st.integers(1, 1000), seed=st.integers(0, 2**32), few=st.booleans())
def test_any_length_with_many_equal_elements_gives_the_result_of_sorting(n, per_mille, seed, few):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, n).astype(np.float32) if few else some_bits("float32", n, rng)
    codec = codecs.find(f"topk:{per_mille / 1000}")
    found = round_trip(values, codec.name)
    assert np.array_equal(found, kept_by_sorting(values, codec.kept(n)), equal_nan=True)


def test_of_equal_elements_the_first_are_kept_so_that_there_are_exactly_k():
    found = round_trip(np.full(100_000, -2.0, np.float32), "topk:0.25")
    assert (found[:25_000] == -2).all()
    assert not found[25_000:].any()


def test_nan_is_never_lost():
    values = np.ones(70_000, np.float32)
    values[[5, 69_999]] = np.nan, -np.nan
    values[7] = np.inf
    assert list(np.flatnonzero(np.isnan(round_trip(values, "topk:0.00004")))) == [5, 69_999]
    assert np.isposinf(round_trip(values, "topk:0.00004")[7])


def test_a_misleading_sample_does_not_change_the_result():
    """The sample has one element of each stretch; here all large elements are in a few stretches."""
    n = 2**20
    values = np.zeros(n, np.float32)
    values[:3_000] = np.arange(1, 3_001)
    assert np.array_equal(
        round_trip(values, "topk:0.002"), kept_by_sorting(values, codecs.find("topk:0.002").kept(n))
    )


def play(inputs: list[np.ndarray], codec: str, op: str) -> list[np.ndarray]:
    """Return the results of all ranks; the all-gather is simulated."""
    pieces = np.concatenate([codecs.encode(values, codec) for values in inputs])
    results = [values.copy() for values in inputs]
    for result in results:
        codecs.all_reduce_topk(result, codec, len(inputs), lambda out, mine: np.copyto(out, pieces), op)
    return results


@pytest.mark.parametrize("op", ["sum", "avg"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_all_ranks_get_the_same_bits_and_the_sum_of_the_kept_elements(ranks, op):
    inputs = [of_every_kind(70_001, seed)["normal"] for seed in range(ranks)]
    wanted = np.zeros(70_001, np.float32)
    for values in inputs:
        wanted += kept_by_sorting(values, codecs.find("topk:0.01").kept(70_001))
    if op == "avg":
        wanted /= np.float32(ranks)
    for result in play(inputs, "topk:0.01", op):
        assert bits(result) == bits(wanted)


def _on_a_rank(comm: unisono.Communicator) -> bytes:
    values = of_every_kind(70_001, comm.rank)["heavy-tailed"]
    codecs.all_reduce_topk(values, "topk:0.01", comm.size, comm.all_gather)
    return values.tobytes()


@pytest.mark.parametrize("ranks", [3, 5])
def test_real_ranks_agree_with_the_simulation(ranks):
    inputs = [of_every_kind(70_001, rank)["heavy-tailed"] for rank in range(ranks)]
    wanted = bits(play(inputs, "topk:0.01", "sum")[0])
    assert unisono.spawn(_on_a_rank, ranks) == [wanted] * ranks


def test_invalid_arguments_of_top_k_are_rejected():
    array = np.ones(8, np.float32)
    with pytest.raises(UsageError, match="drops elements, so it supports only op='sum' and op='avg'; found op='max'"):
        codecs.all_reduce_topk(array, "topk:0.5", 1, np.copyto, "max")
    with pytest.raises(UsageError, match="needs codec topk:F; found fp16"):
        codecs.all_reduce_topk(array, "fp16", 1, np.copyto)


def test_bytes_of_another_wire_are_rejected():
    values = np.arange(70_000, dtype=np.float32)
    good, k = codecs.encode(values, "topk:0.01"), 700
    counts = good[:8].view(np.uint32)
    for damage, complaint in (
        (lambda wire: wire[:8].view(np.uint32).__iadd__(1), "more than k elements"),
        (lambda wire: wire[:8].view(np.uint32).__setitem__(1, counts[1] - 1), "fewer than k elements"),
        (lambda wire: wire[8 : 8 + 2 * k].view(np.uint16).fill(65535), "past the end of its window"),
    ):
        wire = good.copy()
        damage(wire)
        with pytest.raises(ValueError, match=complaint):
            codecs.decode(wire, "topk:0.01", 70_000)
    with pytest.raises(ValueError, match="expected at least k float32 numbers"):
        _engine.encode_topk(np.zeros(4, np.uint8), np.zeros(4, np.uint8), 2)
