"""The part of ``unisono demo`` that predicts a collective, measures it, and shows both.

A second of other calls shows how fast this machine is. The prediction follows from that and from the program alone.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from unisono.algorithms import find
from unisono.bootstrap.job_config import STAGING_BYTES
from unisono.cli.output import table
from unisono.collectives import all_reduce
from unisono.comm.machine import detected_rates
from unisono.comm.measured_calls import MeasuredCall, measure_calls, samples_of
from unisono.costs.calibration import fit_rates
from unisono.costs.prediction import Prediction, predict
from unisono.costs.rates import network_of
from unisono.costs.stored_terms import stored_terms
from unisono.launch.spawn import spawn

RANKS = 4
NBYTES = 1_000_000
CALIBRATING = {"all_reduce": ("naive", "direct", "recursive_doubling", "tree")}
CALIBRATING_BYTES = (8, 16 << 10, 256 << 10, 4 << 20)
PREDICTED = ("ring", "rabenseifner")
BUDGET_S = 1.0


class Comparison(NamedTuple):
    """A call of an algorithm: its predicted terms, the time that the simulator predicts, and the measured time."""

    algorithm: str
    predicted: Prediction
    simulated_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """The relative error of the prediction."""
        return self.predicted.time_s / self.measured_s - 1


def run() -> list[Comparison]:
    """Calibrate, predict and measure all-reduces."""
    from unisono.simulator import simulate

    cores = len(os.sched_getaffinity(0))
    calibrating, measured = spawn(_on_each_rank, RANKS)[0]
    rates = fit_rates(samples_of(calibrating, (RANKS,), cores), STAGING_BYTES, detected_rates())
    network = network_of(rates, RANKS, cores)
    shared = rates._replace(ranks_per_core=max(1.0, RANKS / cores))
    terms = stored_terms(all_reduce.name, (RANKS,))
    return [
        Comparison(
            call.algorithm,
            predict(terms[call.algorithm], all_reduce, NBYTES, shared, STAGING_BYTES),
            simulate(find(call.algorithm).schedule(RANKS), NBYTES, network).time_s,
            call.time_s,
        )
        for call in measured
    ]


def table_of(found: list[Comparison]) -> Any:
    """Return the comparisons as a table."""
    made = table(
        "   all_reduce", ">bytes", ">predicted µs", ">latency", ">bandwidth", ">reduction", ">simulated µs",
        ">measured µs", ">error",
    )  # fmt: skip
    for each in found:
        time_s, latency_s, bandwidth_s, reduction_s, _ = each.predicted
        seconds = (time_s, latency_s, bandwidth_s, reduction_s, each.simulated_s, each.measured_s)
        made.add_row(
            f"   {each.algorithm}", str(NBYTES), *(f"{value * 1e6:.0f}" for value in seconds), f"{each.error:+.0%}"
        )
    return made


def _on_each_rank(comm: Any) -> tuple[list[MeasuredCall], list[MeasuredCall]]:
    calibrating = measure_calls(comm, BUDGET_S, CALIBRATING, CALIBRATING_BYTES)
    return calibrating, measure_calls(comm, BUDGET_S / 4, {all_reduce.name: PREDICTED}, (NBYTES,))
