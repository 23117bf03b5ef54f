"""A sample of the measurements that docs/predictions.md grades, and the rules that select rows.

Figures: HLC-Lab/pico (MIT licence), results/, medians in microseconds; one rank per node. MareNostrum 5:
2025_04_10___20_36_45, 2025_04_12___14_04_47 and 2025_04_12___14_07_21; Fugaku: 2025_03_26___19_49_06.
"""

import statistics
from dataclasses import replace

import pytest

import unisono
from grading import collectives, machines
from grading.calibration import fit
from grading.grade import CLOSE
from grading.mapping import FUJITSU_MPI, OPEN_MPI
from grading.measurements import Row
from grading.prediction import predict
from unisono.errors import DeadlockError

KIB, MIB = 1 << 10, 1 << 20
SAMPLE = [
    Row("mare_nostrum", "32", "ALLGATHER", "recursive_doubling_ompi", MIB, 95.9e-6),
    Row("mare_nostrum", "32", "ALLGATHER", "recursive_doubling_ompi", 64 * MIB, 5078.9e-6),
    Row("mare_nostrum", "32", "ALLGATHER", "ring_ompi", MIB, 320.6e-6),
    Row("mare_nostrum", "32", "ALLGATHER", "ring_ompi", 64 * MIB, 3230.7e-6),
    Row("mare_nostrum", "32", "ALLGATHER", "sparbit_over", 64 * MIB, 2832.2e-6),
    Row("mare_nostrum", "32", "ALLREDUCE", "rabenseifner_ompi", MIB, 303.0e-6),
    Row("mare_nostrum", "32", "ALLREDUCE", "ring_ompi", MIB, 776.1e-6),
    Row("mare_nostrum", "32", "ALLREDUCE", "ring_ompi", 64 * MIB, 19584.4e-6),
    Row("mare_nostrum", "32", "ALLREDUCE", "rabenseifner_ompi", 64 * MIB, 24412.9e-6),
    Row("mare_nostrum", "32", "BCAST", "binomial_ompi", MIB, 672.6e-6),
    Row("mare_nostrum", "32", "BCAST", "bine_lat_new_over", MIB, 261.2e-6),
    Row("fugaku", "2x2x2", "ALLGATHER", "default-ring", MIB, 227e-6),
    Row("fugaku", "2x2x2", "ALLREDUCE", "default-recursive_doubling", MIB, 704e-6),
    Row("fugaku", "2x2x2", "SCATTER", "default-binomial", MIB, 186e-6),
]


def machine_of(row):
    return next(machine for machine in machines.MACHINES if machine.system == row.system)


def cases_of(rows):
    return [(row, machine_of(row).implementation(row)) for row in rows]


def test_the_sample_is_predicted_within_the_error_of_the_page():
    errors = []
    for row, made in cases_of(SAMPLE):
        machine = machine_of(row)
        assert machine.left_out(row) is None
        assert not machine.calibrates(row)
        errors.append(abs(predict(row, made, machine.network(row.nodes)) / row.seconds - 1))
    assert statistics.median(errors) <= 0.12
    assert max(errors) <= 0.25


def test_the_best_algorithm_of_the_sample_is_predicted():
    cases = cases_of(SAMPLE)
    predicted = {row: predict(row, made, machine_of(row).network(row.nodes)) for row, made in cases}
    picks = collectives.picks(cases, predicted)
    assert len(picks) == 5  # of MareNostrum 5: two sizes of all-gather and all-reduce, one of broadcast
    assert all(pick.regret <= CLOSE for pick in picks)


@pytest.mark.parametrize(("row", "name"), [(SAMPLE[5], "all_reduce/rabenseifner"), (SAMPLE[3], "all_gather/ring")])
def test_a_prediction_is_that_of_the_simulator(row, name):
    machine = machine_of(row)
    simulated = unisono.simulate(unisono.find(name).schedule(32), row.nbytes, machine.preset, fold=False)
    assert predict(row, machine.implementation(row), machine.network()) == pytest.approx(simulated.time_s)


@pytest.mark.parametrize("library", [OPEN_MPI, FUJITSU_MPI], ids=["Open MPI", "Fujitsu MPI"])
def test_programs_of_the_libraries_are_correct(library):
    for collective, implementations in library.items():
        for made in implementations.values():
            algorithm = made.algorithm
            assert algorithm.collective.name == collectives.NAMES[collective]
            schedule = algorithm.schedule(8, 0 if algorithm.collective.rooted else None)
            try:
                unisono.prove(schedule)
            except DeadlockError:  # at the depth of Unisono's channels: these need those of MPI
                assert "blocks" in algorithm.name or algorithm.name == "sparbit"


def test_rows_are_left_out_for_reasons_that_do_not_depend_on_predictions():
    marenostrum, _, fugaku = machines.MACHINES
    reasons = [
        (marenostrum, Row("mare_nostrum", "32", "ALLREDUCE", "default_ompi", MIB, 1.0), "default"),
        (marenostrum, Row("mare_nostrum", "32", "GATHER", "linear_synch_ompi", MIB, 1.0), "synchronised"),
        (fugaku, Row("fugaku", "2x2x2", "ALLREDUCE", "default-ring", 4, 1.0), "fewer elements"),
        (fugaku, Row("fugaku", "2x2x2", "ALLREDUCE", "BINE-L-UTOFU-0-6", MIB, 1.0), "uTofu"),
    ]
    for machine, row, part in reasons:
        assert part in machine.left_out(row)


def test_calls_that_allocate_are_graded():
    # Two temporary buffers of 8 MiB: the C library returns them to the system after each call.
    row = Row("mare_nostrum", "32", "REDUCE", "binomial_ompi", 8 * MIB, 7541.5e-6)
    machine = machine_of(row)
    assert machine.left_out(row) is None
    assert not machine.calibrates(row)
    made = machine.implementation(row)
    assert predict(row, made, machine.network()) == pytest.approx(row.seconds, rel=0.25)
    kept = replace(machine.network(), endpoint=replace(machine.network().endpoint, trims_heap=False))
    assert predict(row, made, kept) < 0.75 * row.seconds


def test_a_fit_finds_the_costs_that_made_the_times():
    marenostrum = machines.MACHINES[0]
    network = marenostrum.network()
    names = ("recursive_doubling_ompi", "ring_ompi", "neighbor_ompi", "sparbit_over")
    rows = [
        Row("mare_nostrum", "32", "ALLGATHER", name, nbytes, 1.0) for name in names for nbytes in (2 * KIB, 8 * MIB)
    ]
    cases = [
        (
            replace(row, seconds=predict(row, marenostrum.implementation(row), network)),
            marenostrum.implementation(row),
        )
        for row in rows
    ]
    start = {"bandwidth": 1.2 * network.nics.bandwidth, "jitter_s": 0.8 * network.endpoint.jitter_s}
    fitted = fit(network, cases, start)
    assert fitted.nics.bandwidth == pytest.approx(network.nics.bandwidth, rel=0.03)
    assert fitted.endpoint.jitter_s == pytest.approx(network.endpoint.jitter_s, rel=0.03)


def test_times_below_the_lower_bound_are_recognised():
    short = Row("mare_nostrum", "32", "GATHER", "linear_ompi", 256, 0.5e-6)
    assert collectives.below_the_bound(machine_of(short), short)
    assert not collectives.below_the_bound(machine_of(short), SAMPLE[0])
