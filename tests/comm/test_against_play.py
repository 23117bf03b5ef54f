"""Real processes compute the same bits as `play` in one process."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arrays import dtype_of
from unisono import _engine
from unisono.algorithms import BUILT_IN, catalogue
from unisono.collectives import COLLECTIVES, barrier, find
from unisono.errors import UsageError
from unisono.player import play
from unisono.player.reduction import check_op
from unisono.verifier.rounding import rounding_of

SIZES = (1, 2, 3, 5, 8)
DTYPES = [
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128",
]  # fmt: skip
OPS = ["sum", "prod", "max", "min", "avg", "band", "bor", "bxor"]
WITH_DATA = [collective for collective in COLLECTIVES if collective is not barrier]


def numbers(count: int, name: str, seed: int) -> np.ndarray:
    """Return numbers of every kind of a dtype: small, large and, where they exist, NaN and infinities."""
    random = np.random.default_rng(seed)
    if name == "bool":
        return random.integers(0, 2, count).astype(bool)
    if name.startswith(("int", "uint")):
        return random.integers(0, 256, (count, dtype_of(name).itemsize), dtype=np.uint8).view(dtype_of(name)).ravel()
    values = random.standard_normal(count) * 10.0 ** random.integers(-3, 3, count)
    special = random.random(count) < 0.05
    values[special] = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30], special.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name.startswith("complex"):
            return (values + 1j * random.standard_normal(count)).astype(name)
        return values.astype(dtype_of(name))


def run(comm, name, given, length, dtype, op, root, algorithm, codec):
    """Make the call like a user; return the result as bytes, and whether the input is unchanged."""
    collective = find(name)
    held = collective.held_after(comm.rank, comm.size, comm.size, root or 0)
    source = None if given is None else given.copy()
    how = {
        "algorithm": algorithm,
        "codec": codec,
        **({"op": op} if op else {}),
        **({"root": root} if collective.rooted else {}),
    }
    if collective.single_array:
        array = source if source is not None else np.zeros(length, dtype_of(dtype))
        getattr(comm, name)(array, **how)
        return (array.tobytes() if held else None), held or np.array_equal(array.view(np.uint8), given.view(np.uint8))
    out = np.zeros(length * len(held) // comm.size, dtype_of(dtype)) if held else None
    getattr(comm, name)(out, source, **how)
    kept = source is None or source.tobytes() == given.tobytes()
    return (None if out is None else out.tobytes()), kept


def rounded_by(codec: str):
    """Return a function that rounds a chunk like the codec."""

    def rounded(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        wire = np.empty(_engine.encoded_bytes(codec, len(values)), np.uint8)
        _engine.encode_rounding_source(codec, wire, values.view(np.uint8), False, 0, 0, "")
        return values

    return rounded


def compare(pool, algorithm, length, dtype, op, root, seed, codec=None, run=run):
    """Run on real ranks, play in one process, and compare bits. ``length`` is that of the whole vector.

    ``run`` makes the call on a rank.
    """
    size, collective = pool.size, algorithm.collective
    schedule = algorithm.schedule(size, root)
    inputs = []
    for rank in range(size):
        held = collective.held_before(rank, size, size, root or 0)
        inputs.append(numbers(length * len(held) // size, dtype, seed + rank) if held else None)
    playback = (
        play(
            schedule,
            inputs,
            op or "sum",
            round_sent=rounded_by(codec),
            needs_final_rounding=rounding_of(schedule).last,
        )
        if codec
        else play(schedule, inputs, op or "sum")
    )
    same = [[value] * size for value in (length, dtype, op, root, algorithm.name, codec)]
    results = pool.call(run, [collective.name] * size, inputs, *same)
    for rank, ((found, kept), expected) in enumerate(zip(results, playback.outputs, strict=True)):
        assert kept, f"rank {rank}: the input was changed"
        if expected is None:
            assert found is None
            continue
        wanted = expected.tobytes()
        if found != wanted:
            got = np.frombuffer(found, dtype_of(dtype))
            wrong = np.flatnonzero(
                got.view(np.uint8).reshape(len(got), -1) != expected.view(np.uint8).reshape(len(got), -1)
            )
            raise AssertionError(f"rank {rank}: {wrong.size} wrong bytes; got {got[:8]}, expected {expected[:8]}")


def allowed(op: str, dtype: str) -> bool:
    try:
        check_op(op, dtype)
    except UsageError:
        return False
    return True


@st.composite
def cases(draw):
    size = draw(st.sampled_from(SIZES))
    collective = draw(st.sampled_from(WITH_DATA))
    algorithm = draw(st.sampled_from(catalogue.algorithms_serving(collective, size)))
    dtype = draw(st.sampled_from(DTYPES))
    op = draw(st.sampled_from([op for op in OPS if allowed(op, dtype)])) if collective.reduces else None
    root = draw(st.integers(0, size - 1)) if collective.rooted else None
    length = draw(st.sampled_from([0, 1, 2, 7, 64, 1000, 4099, 40_000]))
    if collective.blocked:
        length *= size
    return size, algorithm, length, dtype, op, root, draw(st.integers(0, 1000))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases())
def test_real_processes_compute_the_bits_of_play(pools, case):
    size, *rest = case
    compare(pools[size], *rest)


@pytest.mark.campaign
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("algorithm", [a for a in BUILT_IN if a.collective is not barrier], ids=str)
def test_every_algorithm_on_long_odd_vectors(pools, algorithm, size, record_property):
    if not algorithm.can_serve(size):
        pytest.skip(f"not declared for {size} ranks")
    length = 100_003 if not algorithm.collective.blocked else 20_011 * size
    root = size - 1 if algorithm.collective.rooted else None
    compare(pools[size], algorithm, length, "float32", "sum" if algorithm.collective.reduces else None, root, 7)
    record_property("calls", size)


@pytest.mark.parametrize("size", SIZES)
def test_one_element_is_enough_for_any_number_of_ranks(pools, size):
    for algorithm in catalogue.algorithms_serving(find("all_reduce"), size):
        compare(pools[size], algorithm, 1, "float64", "sum", None, 3)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_types_are_rounded_once_per_accumulation(pools, name):
    """On five ranks, direct: the owner of a chunk adds four messages in 32 bits and rounds the sum once."""
    compare(pools[5], catalogue.find("direct", find("all_reduce")), 5000, name, "sum", None, 11)
