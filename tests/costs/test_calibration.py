"""The rates of a machine follow from measured times of calls."""

from __future__ import annotations

import numpy as np
import pytest

from unisono import collectives, simulate
from unisono.collectives import all_reduce
from unisono.comm import machine
from unisono.comm.measured_calls import CALIBRATING, CALIBRATING_BYTES, MeasuredCall, merged, samples_of
from unisono.costs.calibration import errors, fit_rates
from unisono.costs.prediction import predict
from unisono.costs.rates import DEFAULT, SLOWDOWN_BYTES, Rates, network_of, rates_for, rates_from, rates_of
from unisono.costs.stored_terms import stored_terms
from unisono.networks import load

STAGING_BYTES = 2 << 20
OTHER = DEFAULT._replace(near_s=4e-7, send_s=5e-8, sent_byte_s=2e-11, received_byte_s=1.5e-11, call_s=1e-6)


def pretended_calls(rates, size, cores):
    """Return calls with the predicted times of a machine; every tenth was interrupted."""
    random = np.random.default_rng(size)
    calls = []
    for name, algorithms in CALIBRATING.items():
        for algorithm in algorithms:
            for nbytes in CALIBRATING_BYTES:
                terms = stored_terms(name, (size,))[algorithm]
                shared = rates._replace(ranks_per_core=max(1.0, size / cores))
                time_s = predict(terms, collectives.find(name), nbytes, shared, STAGING_BYTES).time_s
                time_s *= 1 + 0.02 * random.standard_normal() + (2.0 if len(calls) % 10 == 9 else 0.0)
                calls.append(MeasuredCall(name, algorithm, nbytes, time_s))
    return calls


@pytest.mark.parametrize(("size", "cores"), [(2, 2), (8, 8), (8, 2)])
def test_a_machine_is_recognized_by_the_times_of_its_calls(size, cores):
    samples = samples_of(pretended_calls(OTHER, size, cores), (size,), cores)
    before = np.median(np.abs(errors(samples, DEFAULT, STAGING_BYTES)))
    rates = fit_rates(samples, STAGING_BYTES)
    after = np.median(np.abs(errors(samples, rates, STAGING_BYTES)))
    assert after < 0.05 < before


def test_rates_are_interpolated_between_the_measured_numbers_of_ranks():
    slow = [2.0] * len(SLOWDOWN_BYTES)
    record = {"rates": {}, "by_ranks": {"2": {"near_s": 2e-7}, "8": {"near_s": 8e-7, "slowdown": slow}}}
    found = [rates_for(record, size)["near_s"] for size in (1, 2, 3, 5, 8, 100)]
    assert found == pytest.approx([2e-7, 2e-7, 3e-7, 5e-7, 8e-7, 8e-7])
    assert rates_for(record, 5)["slowdown"] == (1.5,) * len(SLOWDOWN_BYTES)
    assert rates_for({}, 4) == {}


def test_the_slowdown_of_long_arrays_is_found():
    slow = OTHER._replace(slowdown=(1.0, 1.0, 1.0, 1.0, 1.5, 2.0, 2.5))
    samples = samples_of(pretended_calls(slow, 4, 4), (4,), 4)
    rates = fit_rates(samples, STAGING_BYTES)
    assert np.median(np.abs(errors(samples, rates, STAGING_BYTES))) < 0.05
    assert rates.slowdown_at(64 << 20) / rates.slowdown_at(256 << 10) == pytest.approx(2.5, rel=0.25)


def test_the_slowdown_is_interpolated_between_lengths():
    rates = DEFAULT._replace(slowdown=(1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 2.0))
    lengths = (8, 16 << 10, 40 << 10, 64 << 10, 64 << 20, 1 << 30)
    assert [rates.slowdown_at(nbytes) for nbytes in lengths] == [1.0, 1.0, 2.0, 3.0, 2.0, 2.0]


@pytest.mark.parametrize("damaged", [{"slowdown": [1.0]}, {"slowdown": 2.0}, {"near_s": -1.0}, {"near": 1.0}, [1.0]])
def test_a_record_that_has_no_rates_is_refused(damaged):
    with pytest.raises(ValueError, match=r".*"):
        rates_from(damaged)


def test_calls_of_several_jobs_have_their_median_times():
    jobs = [[MeasuredCall("reduce", "tree", 8, time_s)] for time_s in (3e-6, 1e-6, 2e-6)]
    assert merged(jobs) == [MeasuredCall("reduce", "tree", 8, 2e-6)]


def test_a_measured_machine_is_stored_for_the_choice_and_for_the_simulator():
    machine.store_machine({2: OTHER, 4: DEFAULT}, cores=2)
    assert machine.load_rates(2) == OTHER
    assert machine.load_rates(4) == DEFAULT
    assert rates_from(machine.load_tuning()["by_ranks"]["4"]) == DEFAULT
    network = load("this-machine")
    assert network.size == 2
    assert rates_of(network).sent_byte_s == pytest.approx(OTHER.sent_byte_s + OTHER.read_byte_s)
    assert simulate(_ring(2), 1024, "this-machine").time_s > OTHER.call_s


def _ring(size):
    from unisono import find

    return find("ring").schedule(size)


def test_ranks_that_share_cores_are_a_slower_network():
    alone, shared = (network_of(DEFAULT, ranks=4, cores=cores) for cores in (4, 2))
    assert shared.near.latency_s == pytest.approx(alone.near.latency_s + 2 * DEFAULT.turn_s)
    assert shared.endpoint.send_s_per_byte == 2 * alone.endpoint.send_s_per_byte


@pytest.mark.parametrize("nbytes", [8, 4096, 1 << 20])
@pytest.mark.parametrize("name", ["ring", "direct", "recursive_doubling", "rabenseifner", "tree"])
def test_cost_terms_agree_with_the_simulator(name, nbytes):
    from unisono import find

    rates = DEFAULT._replace(local_s=0.0)
    terms = stored_terms("all_reduce", (4,))[name]
    predicted_s = predict(terms, all_reduce, nbytes, rates, STAGING_BYTES).time_s
    simulated_s = simulate(find(name).schedule(4), nbytes, network_of(rates, 4, 4)).time_s
    assert predicted_s == pytest.approx(simulated_s, rel=0.3)


def test_a_damaged_record_by_ranks_is_ignored():
    machine.store_machine({2: Rates()}, cores=2)
    text = machine.machine_path().read_text().replace('"2": {}', '"two": {}')
    machine.machine_path().write_text(text)
    with pytest.warns(UserWarning, match="ignored .*machine.json"):
        assert machine.read_machine() is None
