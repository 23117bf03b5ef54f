"""Calls with a codec: all ranks agree, results are within the bounds, and inputs are unchanged."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from builders import keeps_a_copy
from unisono import spawn
from unisono.algorithms import catalogue
from unisono.codecs import Codec, error_bound, round_in_place
from unisono.codecs.formats import FORMATS
from unisono.collectives import all_gather, all_reduce, broadcast
from unisono.comm.codec_agreement import RoundingMode, agrees
from unisono.errors import GoalError, MismatchError
from unisono.launch.spawn import outcomes_of

CODECS = ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8"]
ALGORITHMS = [None, "ring", "recursive_doubling", "rabenseifner", "direct", "tree", "naive", "swing"]
LENGTHS = [0, 1, 31, 32, 33, 1000, 100_003]
WINDOW = 63  # wherever codec blocks begin, the block of an element is within 31 elements of it


def numbers(kind: str, rank: int, count: int) -> np.ndarray:
    """Return the input of a rank."""
    random = np.random.default_rng(rank)
    if kind == "constant":
        return np.full(count, 0.1 + rank, np.float32)
    if kind == "heavy-tailed":
        return random.standard_cauchy(count).astype(np.float32)
    return random.standard_normal(count).astype(np.float32)


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def sum_all(comm, algorithms, lengths):
    found = {}
    for codec in CODECS:
        for name in algorithms:
            for length in lengths:
                x = numbers("normal", comm.rank, length)
                comm.all_reduce(x, codec=codec, algorithm=name)
                found[codec, name, length] = digest(x)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, *(pytest.param(size, marks=pytest.mark.slow) for size in (4, 5, 8))])
def test_all_ranks_have_the_same_bits(pools, size):
    algorithms = [name for name in ALGORITHMS if name != "swing" or size in (2, 4, 8)]
    first, *others = pools[size].call(sum_all, [algorithms] * size, [LENGTHS] * size)
    assert len(first) == len(CODECS) * len(algorithms) * len(LENGTHS)
    assert all(other == first for other in others)


def sum_of(comm, kind, count, codec, name, op="sum"):
    x = numbers(kind, comm.rank, count)
    comm.all_reduce(x, codec=codec, algorithm=name, op=op)
    return x


@pytest.mark.parametrize("kind", ["normal", "heavy-tailed", "constant"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_sum_of_eight_ranks_stays_within_the_bound(pools, codec, kind):
    count, size = 10_007, 8
    inputs = [numbers(kind, rank, count) for rank in range(size)]
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    padded = [np.pad(np.abs(x), WINDOW // 2, mode="edge") for x in inputs]
    around = np.sum([np.lib.stride_tricks.sliding_window_view(x, WINDOW).max(1) for x in padded], axis=0)
    bound = error_bound(codec, size, around)
    for name in (None, "ring", "recursive_doubling"):
        found = pools[size].call(sum_of, *([value] * size for value in (kind, count, codec, name)))[0]
        error = np.abs(found - exact)
        if kind == "heavy-tailed" and codec == "fp16":  # numbers beyond 65504 saturate and have no bound
            assert (error > 0).any()
            bound = np.where(around < 65504 / 2, bound, np.inf)
        assert (error <= bound).all()
        assert error.max() > 0 or kind == "constant"  # rounding took place


def test_avg_is_the_sum_divided_in_float32(pools):
    total, average = (
        pools[3].call(sum_of, *([value] * 3 for value in ("normal", 1000, "fp8_e4m3", "ring", op)))[0]
        for op in ("sum", "avg")
    )
    assert np.array_equal(average, total / np.float32(3))


def special(comm, codec):
    x = np.arange(100, dtype=np.float32)
    x[5], x[40], x[70] = np.nan, np.inf, -np.inf if comm.rank == 0 else 1.0
    comm.all_reduce(x, codec=codec)
    return x


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_nan_and_infinity_are_transmitted(pools, size, codec):
    """Infinities become NaN in formats without infinity; the other elements of the codec block are unaffected."""
    results = pools[size].call(special, [codec] * size)
    assert len({digest(x) for x in results}) == 1
    x = results[0]
    infinite = FORMATS[codec].infinite
    assert np.isnan(x[5])
    assert (x[40], x[70]) == (np.inf, -np.inf) if infinite else np.isnan(x[[40, 70]]).all()
    rest = np.delete(np.arange(100), [5, 40, 70])
    assert np.allclose(x[rest], size * rest, rtol=0.35, atol=2.5)


def inputs_stay(comm, codec):
    count = 33 * comm.size
    x = numbers("normal", comm.rank, count)
    before = x.copy()
    comm.reduce_scatter(np.empty(33, np.float32), x, codec=codec)
    comm.all_to_all(np.empty(count, np.float32), x, codec=codec)
    gathered = np.empty(comm.size * count, np.float32)
    comm.all_gather(gathered, x, codec=codec)
    comm.gather(gathered if comm.rank == 0 else None, x, codec=codec)
    comm.scatter(np.empty(33, np.float32), x if comm.rank == 0 else None, codec=codec)
    if comm.rank:
        comm.reduce(x, codec=codec)
    else:
        comm.reduce(x.copy(), codec=codec)
    return np.array_equal(x, before)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_input_arrays_are_unchanged(pools, size, codec):
    assert all(pools[size].call(inputs_stay, [codec] * size))


def gather_in_ways(comm, codec):
    x = numbers("normal", comm.rank, 1000)
    found = []
    for name in ("naive", "ring", "recursive_doubling", "bruck", "pat", "neighbour_exchange"):
        if name == "neighbour_exchange" and comm.size % 2:
            continue
        out = np.empty(comm.size * 1000, np.float32)
        comm.all_gather(out, x, codec=codec, algorithm=name)
        found.append(digest(out))
    return found


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [3, *(pytest.param(size, marks=pytest.mark.slow) for size in (2, 5, 8))])
def test_forwarding_does_not_change_the_bits(pools, size, codec):
    """A part of an all-gather has the same bits everywhere, at its owner too, whether it was forwarded or not."""
    found = [name for names in pools[size].call(gather_in_ways, [codec] * size) for name in names]
    assert len(set(found)) == 1


def unequal(comm, codec):
    """Rank r sends (r + d) * 17 numbers to rank d, or to all ranks; some parts are empty."""
    rank, size = comm.rank, comm.size
    to = [(rank + peer) * 17 for peer in range(size)]
    x = numbers("normal", rank, sum(to))
    before = x.copy()
    out = np.empty(sum(to), np.float32)
    comm.all_to_all(out, x, in_sizes=to, out_sizes=to, codec=codec)
    parts = np.split(x, np.cumsum(to)[:-1])
    sizes = [peer * 17 for peer in range(size)]
    gathered = np.empty(sum(sizes), np.float32)
    comm.all_gather(gathered, x[: sizes[rank]], out_sizes=sizes, codec=codec)
    summed = np.empty(sizes[rank], np.float32)
    comm.reduce_scatter(summed, numbers("constant", 0, sum(sizes)), in_sizes=sizes, codec=codec)
    assert np.array_equal(x, before)
    return parts, np.split(out, np.cumsum(to)[:-1]), x[: sizes[rank]], gathered, summed


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_parts_of_any_length_are_encoded_separately(pools, size, codec):
    results = pools[size].call(unequal, [codec] * size)

    def rounded(array):
        array = array.copy()
        round_in_place(array, codec)
        return array

    whole = np.concatenate([rounded(given) for _, _, given, _, _ in results])
    tenth = rounded(np.full(32, 0.1, np.float32))[0]
    for rank, (parts, received, _, gathered, summed) in enumerate(results):
        assert np.array_equal(gathered, whole)
        assert np.allclose(summed, (size - 1) * tenth + np.float32(0.1), rtol=1e-6)
        for peer in range(size):
            sent = results[peer][0][rank]
            assert np.array_equal(received[peer], parts[rank] if peer == rank else rounded(sent))


def with_and_without(comm):
    """Repeat calls that differ only in the codec: no plan may serve the wrong one."""
    x = numbers("normal", comm.rank, 1000)
    results = {}
    for _ in range(3):
        for codec in (None, "bf16", "int8", Codec("int8"), Codec("int8", stochastic=True)):
            y = x.copy()
            comm.all_reduce(y, codec=codec)
            results.setdefault(str(codec), []).append(digest(y))
    return results


def test_calls_with_and_without_a_codec_use_different_plans(pools):
    results = pools[2].call(with_and_without)
    assert results[0] == results[1]
    exact, brain, integers, at_random = (set(found) for found in results[0].values())
    assert len(exact) == len(brain) == len(integers) == 1
    assert len(exact | brain | integers) == 3
    assert len(at_random) == 3  # different random bits in every call


def in_background(comm, codec, count):
    x = numbers("normal", comm.rank, count)
    y = x.copy()
    comm.all_reduce(y, codec=codec, op="avg")
    arrays = [x.copy() for _ in range(5)]
    works = [comm.all_reduce(array, codec=codec, op="avg", async_op=True) for array in arrays]
    works[0].wait()
    for work in works[1:]:
        while not work.done():
            pass
        assert work.exception() is None
    return all(np.array_equal(array, y) for array in arrays)


@pytest.mark.parametrize("codec", ["fp8_e4m3", "topk:0.1"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_asynchronous_calls_give_the_same_results(pools, size, codec):
    assert all(pools[size].call(in_background, [codec] * size, [10_007] * size))


def largest_tenth(comm):
    x = numbers("normal", comm.rank, 1000)
    comm.all_reduce(x, codec="topk:0.1")
    return x


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_top_k_adds_the_largest_numbers_of_each_rank(pools, size):
    results = pools[size].call(largest_tenth)
    expected = np.zeros(1000)
    for rank in range(size):
        x = numbers("normal", rank, 1000)
        kept = np.argsort(-np.abs(x))[:100]
        expected[kept] += x[kept]
    assert len({digest(x) for x in results}) == 1
    assert np.allclose(results[0], expected, rtol=2**-8, atol=1e-2)
    assert np.array_equal(results[0] == 0, expected == 0)


# ---- stochastic rounding ------------------------------------------------------------------------------------------


def at_random(comm):
    found = {}
    codec = Codec("fp8_e4m3", stochastic=True, seed=3)
    root = comm.size - 1
    for length in (1, 33, 1000):
        x = numbers("normal", comm.rank, length)
        for name in _agreeing(all_reduce, comm.size):
            y = x.copy()
            comm.all_reduce(y, codec=codec, algorithm=name)
            found["all_reduce", name, length] = digest(y)
        for name in _agreeing(broadcast, comm.size, root):
            y = x.copy()
            comm.broadcast(y, root=root, codec=codec, algorithm=name)
            found["broadcast", name, length] = digest(y)
        for name in _agreeing(all_gather, comm.size):
            out = np.empty(length * comm.size, np.float32)
            comm.all_gather(out, x, codec=codec, algorithm=name)
            found["all_gather", name, length] = digest(out)
    return found


def _agreeing(collective, size, root=None):
    """Return all algorithms that may be used, and the automatic choice."""
    made = catalogue.algorithms_serving(collective, size)
    return [None, *(one.name for one in made if agrees(one.schedule(size, root), RoundingMode.STOCHASTIC))]


@pytest.mark.parametrize("size", [1, 3, *(pytest.param(size, marks=pytest.mark.slow) for size in (2, 5, 8))])
def test_all_ranks_agree_with_stochastic_rounding(pools, size):
    first, *others = pools[size].call(at_random)
    assert len(first) >= 3 * 15
    assert all(other == first for other in others)


def three_times(comm):
    found = []
    for _ in range(3):
        x = numbers("constant", 0, 1000)
        out = np.empty(comm.size * 1000, np.float32)
        comm.all_gather(out, x, codec=Codec("fp8_e4m3", stochastic=True, seed=5))
        found += [digest(part) for part in np.split(out, comm.size)]
    return found


def test_random_bits_differ_between_ranks_and_calls_and_repeat_between_jobs():
    first, again = (spawn(three_times, 3)[0] for _ in range(2))
    assert first == again
    assert len(set(first)) == 9


def rejected_with_stochastic_rounding(comm):
    with pytest.raises(GoalError) as caught:
        comm.all_reduce(np.ones(8, np.float32), codec=Codec("int8", stochastic=True), algorithm="recursive_doubling")
    return str(caught.value)


def test_an_algorithm_that_disagrees_with_stochastic_rounding_is_rejected_with_alternatives(pools):
    for text in pools[3].call(rejected_with_stochastic_rounding):
        assert "all_reduce/recursive_doubling on 3 ranks, rank 1, chunk 0" in text
        assert "rounds what is sent stochastically" in text
        assert "with another algorithm: naive, direct, ring" in text
        assert "recursive_doubling" not in text.split("hint:")[1]


def mean_with_stochastic_rounding(comm):
    """0.3 is between two numbers of fp8: rounding to nearest is biased, stochastic rounding is not."""
    x = np.full(32 * 500, 0.3, np.float32)
    x[::32] = 448.0  # the scale of each codec block is 1
    y = x.copy()
    comm.all_reduce(x, codec="fp8_e4m3", algorithm="naive")
    comm.all_reduce(y, codec=Codec("fp8_e4m3", stochastic=True), algorithm="naive")
    return [np.delete(z.reshape(-1, 32), 0, axis=1).mean() / comm.size for z in (x, y)]


def test_stochastic_rounding_is_right_on_average(pools):
    to_nearest, by_chance = pools[3].call(mean_with_stochastic_rounding)[0]
    assert abs(to_nearest - 0.3) > 5e-3
    assert abs(by_chance - 0.3) < 1e-3


# ---- programs and ranks that do not agree ------------------------------------------------------------------------


def refused(comm):
    x = np.ones(8, np.float32)
    comm.all_reduce(x, algorithm=keeps_a_copy)
    with pytest.raises(GoalError) as caught:
        comm.all_reduce(x, algorithm=keeps_a_copy, codec="bf16")
    return str(caught.value)


def test_a_program_that_does_not_agree_with_a_codec_is_rejected(pools):
    for text in pools[2].call(refused):
        assert "all_reduce/keeps_a_copy on 2 ranks, rank 1, chunk 0" in text
        assert "call it without a codec, or with another algorithm: naive" in text


def differing(comm, codecs):
    comm.all_reduce(np.ones(1000, np.float32), codec=codecs[comm.rank])
    comm.barrier()


@pytest.mark.parametrize("codecs", [("fp8_e4m3", None), ("fp16", "bf16"), ("topk:0.01", "int8"), ("topk:0.1", None)])
def test_ranks_with_different_codecs_get_a_mismatch_error(codecs):
    errors = [outcome.error for outcome in outcomes_of(differing, 2, codecs, patience_s=10.0)]
    assert [type(error) for error in errors] == [MismatchError] * 2
    for codec in codecs:
        assert f"codec={codec}" in str(errors[0]) or codec is None
    assert str(errors[0]).count("all_reduce(1000 float32, op=sum") == 2
