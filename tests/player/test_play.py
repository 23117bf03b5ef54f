from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NAMES, inputs_for, same, wanted_outputs, written
from unisono import find, play
from unisono.algorithms import algorithms_of
from unisono.collectives import all_reduce
from unisono.errors import GoalError, UsageError

WITH_DATA = [name for name in NAMES if not name.startswith("barrier")]


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(WITH_DATA), size=st.integers(1, 13), per_chunk=st.integers(0, 4), more=st.integers(0, 20),
    seed=st.integers(0, 2**32), data=st.data(),
)  # fmt: skip
def test_every_algorithm_gives_the_textbook_result(name, size, per_chunk, more, seed, data):
    algorithm = find(name)
    root = data.draw(st.integers(0, size - 1)) if algorithm.collective.rooted else None
    schedule = algorithm.schedule(size, root)
    rng = np.random.default_rng(seed)
    inputs = inputs_for(schedule, lambda rank, length: rng.integers(-99, 99, length), per_chunk, more)
    assert same(play(schedule, inputs).outputs, wanted_outputs(schedule, inputs))


@pytest.mark.parametrize("name", [a.name for a in algorithms_of(all_reduce)])
@settings(max_examples=15, deadline=None)
@given(size=st.integers(1, 11), length=st.integers(0, 40), seed=st.integers(0, 2**32))
def test_every_all_reduce_equals_reduce_scatter_followed_by_all_gather(name, size, length, seed):
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(-1000, 1000, length) for _ in range(size)]
    parts = play(find("reduce_scatter/ring").schedule(size), inputs).outputs
    whole = play(find("all_gather/ring").schedule(size), parts).outputs
    assert same(play(find(name, all_reduce).schedule(size), inputs).outputs, whole)


@pytest.mark.parametrize("name", [a.name for a in algorithms_of(all_reduce)])
@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 8, 13])
def test_agreement_all_ranks_end_with_the_same_bits(name, size):
    """Agreement of the expression trees, which the verifier proves, implies agreement of the bits."""
    rng = np.random.default_rng(size)
    inputs = [rng.standard_normal(101).astype(np.float32) * 10.0 ** rng.integers(-6, 6, 101) for _ in range(size)]
    inputs = [given.astype(np.float32) for given in inputs]
    outputs = play(find(name, all_reduce).schedule(size), inputs).outputs
    assert len({output.tobytes() for output in outputs}) == 1
    assert outputs[0].dtype == np.float32


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8, np.uint64, np.complex64]
)
def test_the_result_has_the_dtype_of_the_inputs(dtype):
    inputs = [np.full(6, rank + 1).astype(dtype) for rank in range(3)]
    for output in play(find("ring").schedule(3), inputs).outputs:
        assert output.dtype == dtype
        assert (output == np.full(6, 6).astype(dtype)).all()


def test_avg_divides_the_sum_by_the_number_of_ranks():
    inputs = [np.full(4, float(rank)) for rank in range(4)]
    assert [output.tolist() for output in play(find("ring").schedule(4), inputs, "avg").outputs] == [[1.5] * 4] * 4


@pytest.mark.parametrize(("op", "wanted"), [("band", 0b1000), ("bor", 0b1111), ("bxor", 0b1111)])
def test_integers_have_bitwise_reductions(op, wanted):
    inputs = [[0b1001], [0b1010], [0b1100]]
    assert [output.tolist() for output in play(find("ring").schedule(3), inputs, op).outputs] == [[wanted]] * 3


def test_the_inputs_are_unchanged():
    inputs = [np.arange(6.0) + rank for rank in range(3)]
    copies = [given.copy() for given in inputs]
    play(find("ring").schedule(3), inputs)
    assert same(inputs, copies)


def test_a_vector_may_have_fewer_elements_than_chunks():
    inputs = [np.array([rank + 1]) for rank in range(7)]
    assert [output.tolist() for output in play(find("ring").schedule(7), inputs).outputs] == [[28]] * 7


def test_blocks_of_an_all_gather_may_differ_in_length():
    inputs = [np.arange(rank) for rank in range(5)]
    for name in ("ring", "bruck", "neighbour_exchange", "recursive_doubling"):
        outputs = play(find(f"all_gather/{name}").schedule(5), inputs).outputs
        assert same(outputs, [np.concatenate(inputs)] * 5)


def test_a_barrier_shows_which_ranks_are_known_to_have_arrived():
    frames = list(play(find("barrier/dissemination").schedule(5), record=True).frames())
    heard = [[int(row[0].values.sum()) for row in frame.rows] for frame in frames]
    assert heard == [[1] * 5, [2] * 5, [4] * 5, [5] * 5]


@pytest.mark.parametrize("name", WITH_DATA)
def test_the_first_frame_is_the_input_and_the_last_one_the_result(name):
    schedule = find(name).schedule(5)
    inputs = inputs_for(schedule, lambda rank, length: np.arange(length) + rank)
    playback = play(schedule, inputs, record=True)
    frames = list(playback.frames())
    assert [frame.level for frame in frames] == list(range(playback.levels + 1))
    for rank in range(5):
        held = find(name).collective.held_after(rank, 5, schedule.chunks)
        given = [cell.values for cell in frames[0].rows[rank] if cell is not None]
        assert (inputs[rank] is None and not given) or np.array_equal(np.concatenate(given), inputs[rank])
        if held:
            last = np.concatenate([frames[-1].rows[rank][slot].values for slot in held])
            assert np.array_equal(last, playback.outputs[rank])


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", [a.name for a in algorithms_of(all_reduce)])
def test_agreement_holds_for_zeros_of_both_signs_and_for_any_nan(name, dtype, op):
    """In these cases the functions of numpy depend on the order of the two sides."""
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    nan = np.array([np.nan], dtype).view(bits)[0]
    special = np.concatenate(
        [np.array([0.0, -0.0, 1.0, np.inf, -np.inf], dtype), np.array([nan, nan ^ 1], bits).view(dtype)]
    )
    rng = np.random.default_rng(0)
    inputs = [rng.choice(special, 60) for _ in range(5)]
    outputs = play(find(name, all_reduce).schedule(5), inputs, op).outputs
    assert len({output.tobytes() for output in outputs}) == 1


@pytest.mark.parametrize("name", [a.name for a in algorithms_of(all_reduce)])
@pytest.mark.parametrize("op", ["sum", "prod", "avg"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_agreement_holds_for_complex_numbers(name, dtype, op):
    rng = np.random.default_rng(0)
    inputs = [(rng.standard_normal(60) + 1j * rng.standard_normal(60)).astype(dtype) for _ in range(4)]
    outputs = play(find(name, all_reduce).schedule(4), inputs, op).outputs
    assert len({output.tobytes() for output in outputs}) == 1
    if op == "prod":
        assert np.allclose(outputs[0], np.prod(inputs, axis=0), rtol=1e-4)


def test_the_larger_zero_is_the_positive_one():
    inputs = [np.array([0.0, -0.0]), np.array([-0.0, 0.0])]
    assert not np.signbit(play(find("ring").schedule(2), inputs, "max").outputs).any()
    assert np.signbit(play(find("ring").schedule(2), inputs, "min").outputs).all()


def test_a_missing_result_is_an_error():
    with pytest.raises(GoalError, match="a chunk of the result is missing"):
        play(written("all_gather", 2, "", ""), [[1], [2]])


@pytest.mark.parametrize(
    ("inputs", "op", "complaint"),
    [
        (None, "sum", "inputs for 0 ranks; expected one for each of 3"),
        ([[1], [2]], "sum", "inputs for 2 ranks"),
        ([[1], None, [2]], "sum", "rank 1 has no input"),
        ([[1], [2, 3], [4]], "sum", "rank 1 has 2 elements, rank 0 has 1"),
        ([[1], [2.5], [4]], "sum", "rank 1 has dtype float64, rank 0 has int64"),
        ([[1], [[2]], [4]], "sum", r"rank 1 has shape \(1, 1\)"),
        ([[1], [2], [3]], "times", "no reduction 'times'; expected one of sum, prod"),
        ([[1], [2], [3]], "avg", "would round"),
        ([[True], [False], [True]], "avg", "would round"),
        ([[1.0], [2.0], [3.0]], "bxor", "expected integers or booleans"),
        ([[1j], [2j], [3j]], "max", "complex numbers have no order"),
    ],
)
def test_inputs_that_do_not_match_are_rejected(inputs, op, complaint):
    with pytest.raises(UsageError, match=complaint):
        play(find("ring").schedule(3), inputs, op)


def test_frames_need_a_recording():
    with pytest.raises(UsageError, match="record=True"):
        next(play(find("ring").schedule(2), [[1], [2]]).frames())
