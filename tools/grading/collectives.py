"""Grades predicted times of collectives by algorithm: MareNostrum 5, Leonardo and Fugaku."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from grading.calibration import Case
from grading.grade import CLOSE, Grade, Pick
from grading.machines import MACHINES, Machine
from grading.mapping import FUJITSU_MPI, OPEN_MPI, Implementation
from grading.measurements import Row, read
from grading.prediction import predict
from unisono import collectives
from unisono.simulator.bounds import bandwidth_bound, latency_bound

TARGETS = {"median": 0.12, "best": 0.95, "regret": 1.1}
NAMES = {
    "ALLREDUCE": "all_reduce", "ALLGATHER": "all_gather", "REDUCE_SCATTER": "reduce_scatter", "BCAST": "broadcast",
    "ALLTOALL": "all_to_all", "SCATTER": "scatter", "GATHER": "gather", "REDUCE": "reduce",
}  # fmt: skip
SLACK = 0.9  # for a bandwidth that is fitted
WORST = 12  # rows that are listed


def grades(data: Path) -> list[Grade]:
    """Return the grade of each machine."""
    rows = read(data)
    made = [grade(machine, [row for row in rows if row.system == machine.system]) for machine in MACHINES]
    errors, found = [error for each in made for error in each.errors], [pick for each in made for pick in each.picks]
    return [*made, Grade("all three", errors, found, targets=TARGETS, only_in_summary=True)]


def parts() -> dict[str, str]:
    """Return the table of programs, for the page."""
    lines = ["| collective | algorithm of the library | program | copied | temporary |", "|---|---|---|---:|---|"]
    for library in (OPEN_MPI, FUJITSU_MPI):
        for collective, implementations in library.items():
            for name, made in implementations.items():
                copied = f"{made.copied:g}" if made.copied else ""
                lines.append(
                    f"| {NAMES[collective]} | {name} | {made.algorithm.name} | {copied} | {temporary(made)} |"
                )
    return {"collectives-programs": "\n".join(lines)}


def temporary(made: Implementation) -> str:
    """Return the temporary buffers of an implementation in words."""
    found = [f"{made.sent:g} sent"] if made.sent else []
    found += [f"{made.received:g} received"] if made.received else []
    found += [f"{made.blocks} blocks"] if made.blocks else []
    return ", ".join(found)


def below_the_bound(machine: Machine, row: Row) -> bool:
    """Return whether a measured time is shorter than any algorithm can be: its iterations overlapped."""
    network, collective = machine.network(row.nodes), collectives.find(NAMES[row.collective])
    latency = latency_bound(collective, network, row.size)
    return row.seconds < SLACK * max(latency, bandwidth_bound(collective, network, row.size, row.nbytes))


def usable(machine: Machine, rows: Sequence[Row]) -> tuple[list[Case], Counter[str]]:
    """Return the rows with their programs, and the number of rows left out for each reason."""
    cases, reasons = [], Counter[str]()
    for row in rows:
        if row.system != machine.system or row.nodes not in machine.nodes:
            continue
        why, made = machine.left_out(row), machine.implementation(row)
        if why is None and below_the_bound(machine, row):
            why = "below the lower bound: iterations overlapped"
        if why is not None or made is None:
            reasons[why or "no program in Unisono"] += 1
        else:
            cases.append((row, made))
    return cases, reasons


def calibration_cases(machine: Machine, rows: Sequence[Row]) -> list[Case]:
    """Return the rows to which the costs of a machine are fitted."""
    return [(row, made) for row, made in usable(machine, rows)[0] if machine.calibrates(row)]


def grade(machine: Machine, rows: Sequence[Row]) -> Grade:
    """Compare the predictions for all rows that did not calibrate."""
    cases, reasons = usable(machine, rows)
    graded = [(row, made) for row, made in cases if not machine.calibrates(row)]
    predicted = {row: predict(row, made, machine.network(row.nodes)) for row, made in graded}
    errors = {row: abs(time / row.seconds - 1) for row, time in predicted.items()}
    return Grade(
        machine.title, list(errors.values()), picks(graded, predicted), parameters(machine),
        f"Fitted to {len(cases) - len(graded)} rows: {machine.calibration}.",
        "\n\n".join(
            part
            for part in (worst(errors, predicted), machine.explanation, left_out(reasons, len(rows)))
            if part
        ),
        TARGETS,
    )  # fmt: skip


def picks(cases: Sequence[Case], predicted: dict[Row, float]) -> list[Pick]:
    """Return the choice at each point.

    Implementations of the same program have the same prediction: they are one algorithm, and its measured time is
    that of the fastest.
    """
    points: dict[tuple[str, str, int], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row, made in cases:
        points[row.nodes, row.collective, row.nbytes][made.algorithm.name].append(row)
    found = []
    for (nodes, collective, nbytes), programs in points.items():
        if len(programs) < 2:
            continue
        forecast = {name: min(predicted[row] for row in rows) for name, rows in programs.items()}
        measured = {name: min(row.seconds for row in rows) for name, rows in programs.items()}
        picked, best = min(forecast, key=forecast.__getitem__), min(measured, key=measured.__getitem__)
        where = f"{nodes} nodes, {NAMES[collective]}, {text_of(nbytes)}"
        found.append(Pick(where, picked, best, measured[picked] / measured[best]))
    return found


def text_of(nbytes: int) -> str:
    """Return a number of bytes as text."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B"


def parameters(machine: Machine) -> str:
    """Return the costs of the machine as a block of its network file."""
    text = machine.network().to_toml()
    return f"Costs (preset `{machine.preset}`):\n\n```toml\n{text[text.index('[endpoint]') :].strip()}\n```"


def worst(errors: dict[Row, float], predicted: dict[Row, float]) -> str:
    """Return the table of the rows with the largest errors."""
    lines = [
        "| nodes | collective | algorithm | bytes | predicted | measured | ratio |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for row in sorted(errors, key=lambda each: -max(predicted[each] / each.seconds, each.seconds / predicted[each])):
        time = predicted[row]
        lines.append(
            f"| {row.nodes} | {NAMES[row.collective]} | {row.algorithm} | {text_of(row.nbytes)} "
            f"| {time * 1e6:,.1f} us | {row.seconds * 1e6:,.1f} us | {time / row.seconds:.2f} |"
        )
        if len(lines) == WORST + 2:
            break
    return "The rows with the largest errors:\n\n" + "\n".join(lines)


def left_out(reasons: Counter[str], total: int) -> str:
    """Return the list of rows that are not graded."""
    lines = [f"- {count} rows: {why}" for why, count in reasons.most_common()]
    return f"Of {total} rows of the machine, {sum(reasons.values())} are left out:\n\n" + "\n".join(lines)


__all__ = ["CLOSE", "MACHINES", "calibration_cases", "grades"]
