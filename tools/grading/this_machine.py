"""Grades predictions for this machine, and between test hosts on it, against measurements within the same hour.

    python tools/grading/this_machine.py --name epyc-2-cores                   one host, 2 to 8 ranks
    sudo .venv/bin/python tools/grading/this_machine.py --minutes 8 --hosts    test hosts: 1 and 10 Gbit/s, delay

The measurements are stored in docs/measurements/predictions and the grades are printed; tools/grade_predictions.py
writes them into docs/predictions.md. Run it while nothing else runs on the machine.

1. Calibration, as a minute of `unisono tune` does it: 30 seconds of calls of a few algorithms on 2, 4, 8, ... ranks.
2. Measurement: all algorithms of all collectives, from 8 bytes to 64 MiB, on each number of ranks, in several jobs;
   a time is the median over the jobs. Ranks are bound to cores, in both.
3. The grade: predictions by cost terms (which choose the algorithm of a call) and by the simulator.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).parent.parent
sys.path.insert(0, str(TOOLS))

import numpy as np  # noqa: E402

import unisono  # noqa: E402
from grading.grade import Grade, Pick, summary  # noqa: E402
from unisono import collectives  # noqa: E402
from unisono.algorithms.catalogue import find  # noqa: E402
from unisono.cli.tune import BUDGET_S, MACHINE_SHARE, calibrating_calls, rates_from_calls  # noqa: E402
from unisono.comm.candidates import candidates_for  # noqa: E402
from unisono.comm.links import measure_links  # noqa: E402
from unisono.comm.measured_calls import (  # noqa: E402
    CALIBRATING,
    MeasuredCall,
    bind,
    measure_calls,
    merged,
    samples_of,
)
from unisono.comm.topology import hosts_of  # noqa: E402
from unisono.compiler.geometry import STAGING_BYTES, TRACKS_BETWEEN_HOSTS  # noqa: E402
from unisono.costs.calibration import BETWEEN_HOSTS, fit_rates  # noqa: E402
from unisono.costs.prediction import predict  # noqa: E402
from unisono.costs.rates import DEFAULT, Rates, network_of, rates_for, rates_from  # noqa: E402
from unisono.costs.stored_terms import stored_terms  # noqa: E402

STORED = TOOLS.parent / "docs" / "measurements" / "predictions"
RANKS = range(2, 9)
JOBS = 2
BYTES = (8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20)
TARGETS = {"median": 0.10, "best": 0.90}
# Between hosts: the links, and the bytes of the calls that are measured on each.
LINKS = (("1gbit", None), ("10gbit", None), ("1gbit", 1.0), ("10gbit", 1.0))  # rate, delay in ms
BYTES_BETWEEN_HOSTS = (8, 4 << 10, 64 << 10, 1 << 20, 8 << 20)
CALIBRATION_S = 6.0
CALIBRATING_BETWEEN_HOSTS = {
    "all_reduce": ("recursive_doubling", "ring", "naive"), "all_gather": ("ring",), "broadcast": ("naive",),
    "scatter": ("naive",),
}  # fmt: skip
CALIBRATING_BYTES_BETWEEN_HOSTS = (16, 16 << 10, 256 << 10, 4 << 20)
Predict = Callable[[MeasuredCall], float]


def all_candidates(size: int, counts: tuple[int, ...]) -> dict[str, list[str]]:
    """Return the algorithms of every collective that carries data."""
    hosts = hosts_of(counts)
    return {
        each.name: [variant.key for variant in candidates_for(each, size, hosts)]
        for each in collectives.COLLECTIVES
        if each.carries_data
    }


def _measure(comm: Any, budget_s: float) -> list[MeasuredCall]:
    bind(comm)
    return measure_calls(comm, budget_s, all_candidates(comm.size, (comm.size,)), BYTES)


def measure_machine(minutes: float) -> dict[str, Any]:
    """Calibrate, measure for about ``minutes``, and return the record."""
    began_s = time.time()
    calibrating = calibrating_calls(MACHINE_SHARE * BUDGET_S)
    print(f"calibrated on {', '.join(map(str, calibrating))} ranks, {time.time() - began_s:.0f} s", flush=True)
    jobs: dict[int, list[list[MeasuredCall]]] = {size: [] for size in RANKS}
    for job in range(JOBS):
        for size in RANKS:
            jobs[size].append(unisono.spawn(_measure, size, 60 * minutes / len(RANKS) / JOBS, timeout=1800)[0])
        print(f"measured job {job + 1} of {JOBS}, {time.time() - began_s:.0f} s", flush=True)
    return {
        "machine": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0)),
        "unix_s": round(began_s), "load": os.getloadavg(),
        "calibrating": {str(size): calls for size, calls in calibrating.items()},
        "calls": {str(size): merged(found) for size, found in jobs.items()},
        "spread": spread(jobs.values()),
    }  # fmt: skip


def spread(jobs: Iterable[Sequence[Sequence[MeasuredCall]]]) -> list[float]:
    """Return how well one job predicts another, as the median error and the share of best algorithms.

    No model can be expected to do better than that.
    """
    calls: dict[str, list[MeasuredCall]] = {}
    times_s: dict[tuple[str, str, str, int], float] = {}
    for first, second, *_ in jobs:
        place = str(len(calls))
        calls[place] = list(second)
        times_s |= {(place, *call[:3]): call.time_s for call in first}
    predictors: dict[str, Predict] = {place: _from(times_s, place) for place in calls}
    grade = graded("", calls, predictors)
    return [float(np.median(grade.errors)), sum(pick.regret <= 1.05 for pick in grade.picks) / len(grade.picks)]


def _from(times_s: dict[tuple[str, str, str, int], float], place: str) -> Predict:
    return lambda call: times_s[place, *call[:3]]


def fitted_rates(record: dict[str, Any]) -> dict[str, Any]:
    """Return the rates of a record by number of ranks, as `unisono tune` stores them."""
    return {
        "by_ranks": {
            size: rates_from_calls(_calls(calls), int(size), record["cores"]).as_data()
            for size, calls in record["calibrating"].items()
        }
    }


def _calls(rows: Iterable[Sequence[Any]]) -> list[MeasuredCall]:
    return [MeasuredCall(*row) for row in rows]


def by_terms(rates: Rates, counts: tuple[int, ...], tracks: int = 1) -> Predict:
    """Return the prediction by cost terms."""

    def predicted_s(call: MeasuredCall) -> float:
        terms = stored_terms(call.collective, counts)[call.algorithm]
        return predict(terms, collectives.find(call.collective), call.nbytes, rates, STAGING_BYTES, tracks).time_s

    return predicted_s


def by_simulator(rates: Rates, size: int, cores: int) -> Predict:
    """Return the prediction by the simulator, on one host."""
    network = network_of(rates, size, cores)

    def predicted_s(call: MeasuredCall) -> float:
        collective = collectives.find(call.collective)
        schedule = find(call.algorithm, collective).schedule(size, 0 if collective.rooted else None)
        extra_s = rates.python_call_s - rates.call_s if collective.rooted and collective.blocked else 0.0
        return float(unisono.simulate(schedule, call.nbytes, network).time_s) + extra_s

    return predicted_s


def graded(title: str, calls: dict[str, list[MeasuredCall]], predictors: dict[str, Predict], **texts: Any) -> Grade:
    """Return the grade of predictions; the keys are those of the places at which calls were measured."""
    errors, points = [], defaultdict(list)
    for place, measured in calls.items():
        for call in measured:
            predicted_s = predictors[place](call)
            errors.append(abs(predicted_s / call.time_s - 1))
            points[place, call.collective, call.nbytes].append((predicted_s, call.time_s, call.algorithm))
    picks = []
    for (place, collective, nbytes), found in points.items():
        if len(found) > 1:
            _, picked_s, picked = min(found)
            _, best_s, best = min(found, key=lambda each: each[1])
            picks.append(Pick(f"{collective}, {place}, {nbytes} B", picked, best, picked_s / best_s))
    return Grade(title, errors, picks, **texts)


def grades_of_machine(record: dict[str, Any], simulates: bool = True) -> list[Grade]:
    """Return the grades of the measurements on one host."""
    fitted, cores = fitted_rates(record), record["cores"]
    measured = {size: {tuple(call[:3]) for call in calls} for size, calls in record["calibrating"].items()}
    calls = {
        f"{size} ranks": [call for call in _calls(rows) if tuple(call[:3]) not in measured.get(size, ())]
        for size, rows in record["calls"].items()
    }
    terms, simulator = {}, {}
    for size in map(int, record["calls"]):
        rates = rates_from(rates_for(fitted, size))
        terms[f"{size} ranks"] = by_terms(rates._replace(ranks_per_core=max(1.0, size / cores)), (size,))
        simulator[f"{size} ranks"] = by_simulator(rates, size, cores)
    texts = {
        "parameters": f"{cores} cores; rates by number of ranks: " + ", ".join(fitted["by_ranks"]) + ".",
        "fitted_to": "Fitted to 30 seconds of calls of the algorithms "
        + "; ".join(f"{name}: {', '.join(each)}" for name, each in CALIBRATING.items())
        + ", as a minute of `unisono tune` does; no call that is graded is among them.",
        "remarks": "One job predicts the times of another with a median error of {:.1%}, and its best algorithm is "
        "among the best of the other at {:.1%} of the points.".format(*record["spread"]),
        "targets": TARGETS,
    }
    grades = [graded(f"{cores} cores, cost terms", calls, terms, **texts)]
    if simulates:
        grades.append(graded(f"{cores} cores, simulator", calls, simulator, **texts))
    return grades


def measure_job(minutes: float, file: Path) -> None:
    """Measure the links and the calls of a job; every rank calls this, and rank 0 writes the record."""
    with unisono.connect() as comm:
        links = measure_links(comm)
        counts = tuple(len(ranks) for ranks in comm.hosts)
        chosen = all_candidates(comm.size, counts)
        calibrating = measure_calls(comm, CALIBRATION_S, CALIBRATING_BETWEEN_HOSTS, CALIBRATING_BYTES_BETWEEN_HOSTS)
        calls = measure_calls(comm, 60 * minutes, chosen, BYTES_BETWEEN_HOSTS)
        if comm.rank == 0:
            record = {
                "counts": counts, "round_trip_s": max(link.round_trip_s for link in links),
                "rate": min(link.rate for link in links), "calibrating": calibrating, "calls": calls,
            }  # fmt: skip
            file.write_text(json.dumps(record))


def measure_hosts(minutes: float, places: Sequence[str], file: Path) -> None:
    """Measure all links and placements on test hosts, and store the record of each as soon as it is complete."""
    from test_hosts import TestHosts

    records: list[dict[str, Any]] = []
    for place in places:
        for rate, delay_ms in LINKS:
            with TestHosts(place.count(",") + 1, rate=rate, mtu=9000, delay_ms=delay_ms) as hosts:
                found = Path(hosts.directory) / "record.json"
                command = [sys.executable, "-m", "unisono", "run", "--ssh", hosts.ssh, "--hosts", place, __file__]
                command += ["--in-job", str(found), "--minutes", str(minutes / len(LINKS) / len(places))]
                subprocess.run(command, check=True)
                records.append({"rate_stated": rate, "delay_ms": delay_ms, **json.loads(found.read_text())})
            stored = {"cores": os.cpu_count() or 1, "records": records}
            file.write_text(json.dumps(stored, separators=(",", ":")) + "\n")
            print(f"measured {place} at {rate}, delay {delay_ms} ms", flush=True)


def grades_of_hosts(records: list[dict[str, Any]], cores: int) -> list[Grade]:
    """Return the grades of the measurements between test hosts, for each placement and for all."""
    places: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        places[f"{len(record['counts'])}x{record['counts'][0]}"].append(record)
    each = [grade_of_hosts(found, cores, f"test hosts {place}") for place, found in places.items()]
    return [*each, grade_of_hosts(records, cores, "test hosts, all", only_in_summary=True)]


def grade_of_hosts(records: list[dict[str, Any]], cores: int, title: str, **texts: Any) -> Grade:
    """Return the grade of some measurements between test hosts."""
    calls, terms = {}, {}
    for record in records:
        counts = tuple(record["counts"])
        delay = f", {record['delay_ms']:g} ms" if record["delay_ms"] else ""
        place = f"{len(counts)}x{counts[0]} at {record['rate_stated']}{delay}"
        calls[place] = _calls(record["calls"])
        way_s = record["round_trip_s"] / 2
        start = DEFAULT._replace(
            crossing_s=way_s / 4,
            far_s=way_s / 2,
            crossing_byte_s=1 / record["rate"],
            contended_byte_s=1 / record["rate"],
        )
        samples = samples_of(_calls(record["calibrating"]), counts, cores)
        rates = fit_rates(samples, STAGING_BYTES, start, BETWEEN_HOSTS)
        terms[place] = by_terms(
            rates._replace(ranks_per_core=max(1.0, max(counts) / cores)), counts, TRACKS_BETWEEN_HOSTS
        )
    return graded(
        title, calls, terms, targets={"median": TARGETS["median"]}, **texts,
        parameters="Latency, cost of a message on the link, and time per byte, for each link.",
        fitted_to="Fitted to six seconds of calls of six algorithms on that link, of sizes that are not graded.",
    )  # fmt: skip


def grades(data: Path, folder: Path = STORED) -> list[Grade]:
    """Return the grades of the measurements stored in ``folder``; FileNotFoundError is raised if there are none.

    ``data`` is the folder of published measurements, of which none are needed here.
    """
    found = []
    for file in sorted(folder.glob("machine-*.json")):
        found += grades_of_machine(json.loads(file.read_text()))
    hosts = folder / "test-hosts.json"
    if hosts.exists():
        stored = json.loads(hosts.read_text())
        found += grades_of_hosts(stored["records"], stored["cores"])
    return found


def grade(minutes: float, folder: Path, name: str) -> list[Grade]:
    """Calibrate, measure this machine for about ``minutes``, store the record, and return the grades."""
    record = measure_machine(minutes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"machine-{name}.json").write_text(json.dumps(record, separators=(",", ":")) + "\n")
    return grades_of_machine(record)


def main() -> None:
    """Measure, store and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=15.0, help="of the measurement after the calibration")
    parser.add_argument("--name", default="here", help="of the machine, for the file of its measurements")
    parser.add_argument("--hosts", action="store_true", help="measure between two test hosts; needs root")
    parser.add_argument("--places", default="a:1,b:1;a:1,b:1,c:1,d:1;a:4,b:4,c:4,d:4", help="ranks on the test hosts")
    parser.add_argument("--folder", type=Path, default=STORED, help="where the measurements are stored")
    parser.add_argument("--stored", action="store_true", help="grade the stored measurements again")
    parser.add_argument("--in-job", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_job is not None:
        measure_job(arguments.minutes, arguments.in_job)
        return
    if arguments.stored:
        found = grades(arguments.folder, arguments.folder)
    elif arguments.hosts:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        file = arguments.folder / "test-hosts.json"
        measure_hosts(arguments.minutes, arguments.places.split(";"), file)
        stored = json.loads(file.read_text())
        found = grades_of_hosts(stored["records"], stored["cores"])
    else:
        found = grade(arguments.minutes, arguments.folder, arguments.name)
    print(summary(found))


if __name__ == "__main__":
    main()
