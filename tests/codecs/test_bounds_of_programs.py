"""``error_bound`` holds for every algorithm: a search for the worst inputs finds none that exceed it."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import numpy as np
import pytest

from unisono import codecs, find, play
from unisono.algorithms import BUILT_IN
from unisono.codecs import Codec, decode, encode, error_bound
from unisono.codecs.formats import BLOCK, FORMATS
from unisono.errors import GoalError, UsageError
from unisono.schedule import Schedule, freeze
from unisono.verifier import count_roundings
from unisono.verifier.rounding import rounding_of

REDUCING = [one for one in BUILT_IN if one.collective.reduces and one.collective.carries_data]
TRIES = 24  # inputs that are improved in parallel, for each chunk


class Setting(NamedTuple):
    """A schedule and a codec. Each candidate is the first element of a separate codec block."""

    schedule: Schedule
    codec: Codec
    roundings: int
    last: bool

    def results(self, inputs: np.ndarray, exact: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the results and the largest partial sums of ``inputs[rank, chunk, candidate]``."""
        size, chunks, tries = inputs.shape
        spread = np.zeros((size, chunks, tries, BLOCK), np.float64 if exact else np.float32)
        spread[..., 0] = inputs
        seeds = count(1)

        def rounded(values: np.ndarray) -> np.ndarray:
            codec = self.codec
            codec = Codec(codec.name, stochastic=True, seed=next(seeds)) if codec.stochastic else codec
            return decode(encode(np.ascontiguousarray(values), codec), codec, values.size)

        given = [row.reshape(-1) for row in spread]
        if exact:
            played = play(self.schedule, given, record=True)
        else:
            played = play(self.schedule, given, round_sent=rounded, needs_final_rounding=self.last)
        found = [out for out in played.outputs if out is not None]
        whole = np.concatenate(found) if found[0].size * len(found) == spread[0].size else found[0]
        largest = np.abs(inputs).max(axis=0).astype(np.float64)
        for _, row in (state for states in played.history for state in states):
            for chunk, cell in enumerate(row[:chunks]):
                if cell is not None:
                    largest[chunk] = np.maximum(largest[chunk], np.abs(cell.values.reshape(tries, BLOCK)[:, 0]))
        return whole.reshape(chunks, tries, BLOCK)[..., 0].astype(np.float64), largest

    def errors(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the errors of the results, and the largest partial sums."""
        wanted, largest = self.results(inputs, exact=True)
        return np.abs(self.results(inputs, exact=False)[0] - wanted), largest

    def share(self, inputs: np.ndarray) -> np.ndarray:
        """Return the errors relative to the bound."""
        error, largest = self.errors(inputs)
        return error / error_bound(self.codec, self.schedule.size, largest, roundings=self.roundings)


def setting_of(schedule: Schedule, codec: Codec) -> Setting:
    schedule = freeze(schedule)
    roundings = count_roundings(schedule, codec.stochastic)
    return Setting(schedule, codec, roundings, rounding_of(schedule, codec.stochastic).last)


def worst_inputs(setting: Setting, steps: int) -> np.ndarray:
    """Search, starting from partial sums near 1, for inputs with the largest errors."""
    random = np.random.default_rng(0)
    size, chunks = setting.schedule.size, setting.schedule.chunks
    step = setting.codec.relative_error or 1 / 127
    pattern = np.resize([1, -0.5, 1, -0.5, -1, 0.5, -1, 0.5], size)[:, None, None]
    signs = random.choice([-1.0, -0.5, 0.5, 1.0], (size, chunks, TRIES))
    inputs = np.where(np.arange(TRIES) < TRIES * 2 // 3, pattern, signs)
    inputs = (inputs * (1 + step * random.uniform(0.5, 1.5, inputs.shape))).astype(np.float32)
    share = setting.share(inputs)
    for _ in range(steps):
        changed = inputs.copy()
        one = random.integers(size, size=(1, chunks, TRIES))
        factor = 1 + step * random.normal(size=one.shape) * 10.0 ** random.uniform(-2, 0.5, one.shape)
        np.put_along_axis(changed, one, (np.take_along_axis(changed, one, 0) * factor).astype(np.float32), 0)
        better = setting.share(changed)
        inputs, share = np.where(better >= share, changed, inputs), np.maximum(better, share)
    return inputs


@pytest.mark.campaign
@pytest.mark.parametrize("size", [5, 8])
@pytest.mark.parametrize("name", ["fp16", "int8"])
@pytest.mark.parametrize("algorithm", REDUCING, ids=str)
def test_a_search_finds_no_inputs_that_exceed_the_bound(algorithm, name, size, record_property):
    if algorithm.can_serve(size):
        record_property("searches", 1)
        setting = setting_of(algorithm.schedule(size), codecs.find(name))
        share = setting.share(worst_inputs(setting, 6))
        assert 0.02 < share.max() <= 1


@pytest.mark.campaign
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3, 4, 6, 7, 8, 13, 16])
@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("algorithm", REDUCING, ids=str)
def test_a_longer_search_finds_no_inputs_that_exceed_the_bound(algorithm, name, stochastic, size, record_property):
    if not algorithm.can_serve(size):
        return
    try:
        setting = setting_of(algorithm.schedule(size), Codec(name, stochastic=stochastic))
    except GoalError:
        assert stochastic  # the algorithm does not support stochastic codecs
        return
    record_property("searches", 1)
    assert setting.share(worst_inputs(setting, 20)).max() <= 1


def test_recursive_doubling_exceeds_the_bound_of_one_rounding_per_rank():
    """It rounds 8 + 4 + 2 times on 8 ranks, and the search finds inputs that show it: false bounds are found."""
    setting = setting_of(find("recursive_doubling").schedule(8), codecs.find("fp16"))
    assert setting.roundings == 14
    inputs = worst_inputs(setting, 300)
    error, largest = setting.errors(inputs)
    assert (error > error_bound("fp16", 8, largest, roundings=8)).any()
    assert (error <= error_bound("fp16", 8, largest, roundings=14)).all()
    assert (error <= error_bound("fp16", 8, largest)).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8, 13])
@pytest.mark.parametrize("algorithm", REDUCING, ids=str)
def test_no_algorithm_rounds_more_often_than_the_general_bound_assumes(algorithm, size):
    if algorithm.can_serve(size):
        roundings = count_roundings(algorithm.schedule(size))
        assert size - 1 <= roundings <= 2 * size - 1
        for name in FORMATS:
            assert error_bound(name, size, 3.0, roundings=roundings) <= error_bound(name, size, 3.0)


@pytest.mark.parametrize(
    ("name", "size", "roundings"),
    [("ring", 8, 8), ("recursive_doubling", 8, 14), ("recursive_doubling", 6, 9), ("reduce_scatter/ring", 8, 7),
     ("reduce/naive", 5, 4), ("broadcast/tree", 8, 1), ("all_to_all/bruck", 5, 1), ("barrier/tree", 4, 0)],
)  # fmt: skip
def test_roundings_are_counted_in_the_program(name, size, roundings):
    assert count_roundings(find(name).schedule(size)) == roundings


def test_an_addition_in_float32_is_part_of_the_bound():
    """A reduce on two ranks rounds once and then adds."""
    assert float(error_bound("fp16", 2, 1.0, roundings=1)) == pytest.approx(2**-11 + 2**-24 * (1 + 2**-11), rel=1e-9)


@pytest.mark.parametrize("fraction", ["0.01", "0.5", "1"])
def test_topk_loses_no_more_than_the_bound(fraction):
    codec, size = codecs.find(f"topk:{fraction}"), 5
    random = np.random.default_rng(0)
    inputs = [random.normal(size=1000).astype(np.float32) for _ in range(size)]
    total = np.zeros(1000, np.float32)
    for values in inputs:
        total += decode(encode(values, codec), codec, 1000)
    partial = np.abs(np.cumsum([values.astype(np.float64) for values in inputs], axis=0)).max(axis=0)
    largest = np.maximum(partial, np.abs(inputs).max(axis=0))
    error = np.abs(total - np.sum(inputs, axis=0, dtype=np.float64))
    assert (error <= error_bound(codec, size, largest)).all()
    assert float(error_bound(codec, size, 1.0)) == pytest.approx(size, rel=1e-5)


@pytest.mark.parametrize(("ranks", "roundings"), [(0, None), (2.0, None), (4, 8), (4, -1), (4, True)])
def test_invalid_numbers_are_rejected(ranks, roundings):
    with pytest.raises(UsageError, match="error_bound: r"):
        error_bound("bf16", ranks, 1.0, roundings=roundings)
