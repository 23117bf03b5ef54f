"""Reports a measurement: in the columns of nccl-tests, and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unisono.bench.cases import Case
from unisono.bench.measure import Effort, Measurement, Result, Times
from unisono.comm.topology import least_crossing


@dataclass(frozen=True)
class Figures:
    """The time of a contender at a case, and the bandwidths that follow from it.

    *algbw* is the bytes of the vector per second. *busbw* is algbw times the fraction of the vector that the busiest
    rank must send or receive at least: the traffic of a link between ranks if the algorithm is optimal. It can be
    compared between numbers of ranks and with the bandwidth of the hardware.
    """

    contender: str
    time_us: float  # the requested quantile
    median_us: float
    min_us: float
    p99_us: float
    mean_us: float
    algbw: float  # GB/s
    busbw: float  # GB/s
    wrong: int
    calls: int
    latency_us: float | None = None  # of a call that is waited for; time_us is that of calls that are enqueued


def figures(measurement: Measurement, result: Result, name: str) -> Figures:
    """Return the figures of a measured contender."""
    times: Times = result.times[name]
    communicates = {contender.name: contender.communicates for contender in measurement.contenders}[name]
    factor = float(result.case.collective.bus_factor(measurement.size)) if communicates else 1.0
    algbw = result.case.bytes / times.time_s / 1e9
    return Figures(
        name, times.time_s * 1e6, times.quantile_s(0.5) * 1e6, times.quantile_s(0.0) * 1e6,
        times.quantile_s(0.99) * 1e6, times.mean_s * 1e6, algbw, algbw * factor, times.wrong, times.calls,
        None if times.latency_s is None else times.latency_s * 1e6,
    )  # fmt: skip


def bound_us(measurement: Measurement, case: Case) -> float | None:
    """Return the least time in which the bytes can cross the slowest link between hosts; None if it is not known.

    For an all-reduce on h hosts it is 2(h-1)/h times the bytes of the vector, divided by the rate of the link.
    """
    if measurement.rate is None:
        return None
    return float(least_crossing(case.collective, measurement.hosts)) * case.bytes / measurement.rate * 1e6


def time_word(effort: Effort) -> str:
    """Return the name of the statistic that is reported."""
    words = {0.0: "fastest", 0.5: "median"}
    word = words.get(effort.quantile, f"quantile {effort.quantile:g}")
    return f"{word} of the fastest trial" if effort.fastest_trial else word


def rivals(measurement: Measurement, name: str) -> list[str]:
    """Return the names of the contenders that a contender is compared with."""
    return [each.name for each in measurement.contenders if each.communicates and each.name != name]


def ratios(measurement: Measurement, result: Result, name: str) -> dict[str, float]:
    """Return the time of each rival divided by that of the named contender; empty if that was not measured."""
    if result.fastest([name]) is None:
        return {}
    mine = result.times[name].time_s
    return {
        rival: result.times[rival].time_s / mine
        for rival in rivals(measurement, name)
        if result.fastest([rival]) is not None
    }


def chosen(measurement: Measurement, result: Result, name: str) -> str | None:
    """Return the contender of a line of the table: the named one, or the fastest one where that is missing."""
    return result.fastest([name]) or result.fastest(each.name for each in measurement.contenders if each.communicates)


def case_words(case: Case) -> list[str]:
    """Return the first columns of nccl-tests."""
    op = case.op if case.collective.reduces else "none"
    return [str(case.bytes), str(case.count), case.dtype, op]


def as_data(measurement: Measurement, name: str) -> dict[str, Any]:
    """Return the measurement as plain data, for ``--json``."""
    return {
        "ranks": measurement.size,
        "quantile": measurement.effort.quantile,
        "fastest_trial": measurement.effort.fastest_trial,
        **({"hosts": list(measurement.hosts), "link_bytes_per_s": measurement.rate} if measurement.hosts else {}),
        "contenders": [
            {"name": each.name, "version": each.version, "dropped": measurement.dropped.get(each.name)}
            for each in measurement.contenders
        ],
        "cases": [_case_as_data(measurement, result, name) for result in measurement.results],
    }  # fmt: skip


def _figures_as_data(found: Figures) -> dict[str, Any]:
    """Return figures without those that were not measured."""
    return {name: value for name, value in vars(found).items() if value is not None}


def _case_as_data(measurement: Measurement, result: Result, name: str) -> dict[str, Any]:
    case = result.case
    timed = [each for each, times in result.times.items() if times.calls]
    best = result.fastest(rivals(measurement, name))
    by_rival = ratios(measurement, result, name)
    return {
        "collective": case.collective.name, "bytes": case.bytes, "count": case.count, "dtype": case.dtype,
        "op": case.op if case.collective.reduces else None, "algorithm": case.algorithm, "device": case.device,
        "results": [_figures_as_data(figures(measurement, result, each)) for each in timed],
        "unsupported": {each: times.unsupported for each, times in result.times.items() if times.unsupported},
        **({} if measurement.rate is None else {"bound_us": bound_us(measurement, case)}),
        "best_rival": best, "ratio_to_best_rival": by_rival.get(best) if best else None, "ratios": by_rival,
    }  # fmt: skip
