"""The grade of predictions for this machine, on invented measurements."""

import json

import pytest

from grading import this_machine
from unisono.costs.rates import DEFAULT


def record(factor):
    """Return measurements of a machine whose calls take ``factor`` times as long as the default rates predict."""
    rates = DEFAULT._replace(ranks_per_core=1.5)

    def calls(size, ranks_per_core, times):
        predicted = this_machine.by_terms(rates._replace(ranks_per_core=ranks_per_core), (size,))
        found = []
        for name in ("naive", "ring", "direct"):
            for nbytes in (8 * times, 4096 * times, 16384 * times):
                call = this_machine.MeasuredCall("all_reduce", name, nbytes, 1.0)
                found.append([*call[:3], factor * predicted(call)])
        return found

    return {
        "cores": 2, "spread": [0.05, 0.9], "calibrating": {"2": calls(2, 1.0, 512), "4": calls(4, 2.0, 512)},
        "calls": {"2": calls(2, 1.0, 1), "3": calls(3, 1.5, 1)},
    }  # fmt: skip


def test_predictions_of_a_calibrated_machine_are_graded(tmp_path):
    (tmp_path / "machine-here.json").write_text(json.dumps(record(1.5)))
    terms, simulator = this_machine.grades(tmp_path, tmp_path)
    assert terms.median < 0.1
    assert len(terms.errors) == len(simulator.errors) == 18 - 3  # calls that calibrate are left out
    assert terms.best == 1.0
    assert "median error of 5.0%" in terms.section()


def test_one_job_is_compared_with_another():
    def job(*times_s):
        return [
            this_machine.MeasuredCall("reduce", name, 8, time_s)
            for name, time_s in zip(("naive", "tree", "chain"), times_s, strict=True)
        ]

    error, best = this_machine.spread([[job(1.0, 2.0, 3.0), job(2.0, 1.0, 3.0)], [job(1.0, 2.0, 3.0)] * 2])
    assert error == pytest.approx(0.0)
    assert best == 0.5


def test_calls_between_hosts_are_graded():
    place = {"rate_stated": "1gbit", "delay_ms": 1.0, "counts": [1, 1], "round_trip_s": 2e-3, "rate": 1.2e8}
    rows = [
        ["all_reduce", "ring", 2.1e-3],
        ["all_reduce", "recursive_doubling", 1.05e-3],
        ["all_gather", "ring", 1.05e-3],
    ]
    calls, calibrating = ([[*row[:2], nbytes, row[2]] for row in rows] for nbytes in (8, 16))
    grade, total = this_machine.grades_of_hosts([{**place, "calls": calls, "calibrating": calibrating}], 2)
    assert (grade.title, total.title) == ("test hosts 2x1", "test hosts, all")
    assert grade.median < 0.1
    assert grade.picks[0].picked == "recursive_doubling"
    assert grade.picks[0].where == "all_reduce, 2x1 at 1gbit, 1 ms, 8 B"
