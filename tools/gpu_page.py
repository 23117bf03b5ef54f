"""The tables of docs/gpu.md, from the stored results of tools/measure_gpu.py and the tools next to it.

``python tools/measure_gpu.py --write-docs`` fills them in. A time is the range of several runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import page_parts

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "gpu.md"
STORED = ROOT / "docs" / "measurements" / "h200"
MIB = 1 << 20
NOT_MEASURED = "*Not measured yet.*"
BOUND_BYTES = 16 * MIB  # shorter vectors stay in the caches of the GPU

# The targets of the project, in µs: kernel mode by ranks, then the largest bytes for which each holds.
KERNEL_TARGETS_US = {
    2: {64 << 10: 8, MIB: 9, 64 * MIB: 90, 256 * MIB: 320},
    4: {64 << 10: 14, MIB: 18, 64 * MIB: 180, 256 * MIB: 640},
    8: {64 << 10: 20, MIB: 28, 64 * MIB: 350, 256 * MIB: 1270},
}
# Stream mode: what programs made for one experiment reached, which is the target.
STREAM_TARGETS_US = {
    2: {64 << 10: 299, MIB: 302, 64 * MIB: 432, 256 * MIB: 759},
    4: {64 << 10: 946, MIB: 953, 64 * MIB: 1249, 256 * MIB: 2074},
    8: {64 << 10: 2489, MIB: 2517, 64 * MIB: 3145, 256 * MIB: 4984},
}
TARGETS_US = {"kernel": KERNEL_TARGETS_US, "stream": STREAM_TARGETS_US}
HOST_TARGETS_US = {"comm": 4, "torch": 12}
CODEC_TARGET_PERCENT = 80  # of the speed of a copy


def size_name(nbytes: int) -> str:
    """Return 1 MiB for 1048576."""
    for unit, width in (("MiB", MIB), ("KiB", 1024)):
        if nbytes % width == 0:
            return f"{nbytes // width} {unit}"
    return f"{nbytes} B"


def number(value: float) -> str:
    """Return a number with three digits, or all those before the point, with thousands separated."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def span(values: Iterable[float]) -> str:
    """Return the range of several runs."""
    ordered = sorted(values)
    low, high = number(ordered[0]), number(ordered[-1])
    return low if low == high else f"{low} – {high}"


def median(values: Iterable[float]) -> float:
    """Return the middle value."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def target_us(mode: str, ranks: int, nbytes: int) -> float | None:
    """Return the target of an all_reduce, or None if there is none at this size."""
    targets = TARGETS_US[mode].get(ranks, {})
    if nbytes <= 64 << 10:
        return targets.get(64 << 10)
    return targets.get(nbytes)


def moved_bytes(collective: str, nbytes: int, ranks: int) -> float:
    """Return the bytes that all ranks together must read and write on one GPU, for a vector of ``nbytes``."""
    return {
        "all_reduce": ranks * 2 * nbytes,  # a rank reads a part of every rank's vector and writes it to every rank
        "all_gather": nbytes + ranks * nbytes,  # parts are read once and written to every rank
        "reduce_scatter": ranks * nbytes + nbytes,
        "all_to_all": ranks * 2 * nbytes,
        "broadcast": nbytes + (ranks - 1) * nbytes,
    }[collective]


class Results:
    """The stored rows of measure_gpu.py, by what they measure."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.rows: list[dict[str, Any]] = result["rows"]
        self.machine: dict[str, Any] = result.get("machine", {})
        rates = [row["bytes_per_s"] for row in self.rows if row["part"] == "bandwidth"]
        self.bytes_per_s = max(rates, default=None)

    def find(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return the rows that have these values."""
        return [row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())]

    def times(self, mode: str, ranks: int, contender: str, collective: str, nbytes: int) -> list[float] | None:
        """Return the runs of a contender, or None if it was not measured."""
        found = self.find(
            part="times", mode=mode, ranks=ranks, contender=contender, collective=collective, bytes=nbytes
        )
        return found[0].get("us") if found else None

    def cases(self, mode: str, collective: str) -> list[tuple[int, int]]:
        """Return the ranks and bytes at which a collective was measured, in order."""
        rows = self.find(part="times", mode=mode, contender="unisono", collective=collective)
        return sorted({(row["ranks"], row["bytes"]) for row in rows})

    def bound_us(self, collective: str, nbytes: int, ranks: int) -> float | None:
        """Return the time in which the memory of the GPU can move the bytes that must move."""
        if self.bytes_per_s is None or nbytes < BOUND_BYTES:
            return None
        return moved_bytes(collective, nbytes, ranks) / self.bytes_per_s * 1e6


def table(columns: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown; the columns that hold numbers are aligned to the right."""
    if not rows:
        return NOT_MEASURED
    rule = ["---" if column == "collective" or column == "" else "--:" for column in columns]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [columns, rule, *rows])


def all_reduce_table(results: Results, mode: str) -> str:
    """Return the times of all_reduce in a mode, with the target, the bound of the memory, and Gloo."""
    rows = []
    for ranks, nbytes in results.cases(mode, "all_reduce"):
        ours = results.times(mode, ranks, "unisono", "all_reduce", nbytes)
        gloo = results.times(mode, ranks, "gloo", "all_reduce", nbytes)
        target, bound = target_us(mode, ranks, nbytes), results.bound_us("all_reduce", nbytes, ranks)
        assert ours is not None
        rows.append([
            str(ranks), size_name(nbytes), span(ours), number(target) if target else "",
            ("yes" if max(ours) <= target else "in part" if min(ours) <= target else "no") if target else "",
            f"{median(ours) / bound:.2f}" if bound else "", span(gloo) if gloo else "",
            number(median(gloo) / median(ours)) if gloo else "",
        ])  # fmt: skip
    columns = [
        "ranks", "bytes", "µs", "target", "reached", "÷ bound of the memory", "Gloo on CUDA tensors, µs",
        "Gloo ÷ Unisono",
    ]  # fmt: skip
    return table(columns, rows)


def collectives_table(results: Results) -> str:
    """Return the times of the other collectives, in both modes."""
    rows = []
    for name in ("all_gather", "reduce_scatter", "all_to_all", "broadcast"):
        cases = sorted({case for mode in TARGETS_US for case in results.cases(mode, name)})
        for ranks, nbytes in cases:
            kernel, stream = (results.times(mode, ranks, "unisono", name, nbytes) for mode in TARGETS_US)
            gloo = results.times("kernel", ranks, "gloo", name, nbytes)
            bound = results.bound_us(name, nbytes, ranks)
            rows.append([
                name, str(ranks), size_name(nbytes), span(kernel) if kernel else "",
                f"{median(kernel) / bound:.2f}" if kernel and bound else "", span(stream) if stream else "",
                span(gloo) if gloo else "not supported" if results.find(contender="gloo", collective=name) else "",
            ])  # fmt: skip
    columns = [
        "collective", "ranks", "bytes", "kernel mode, µs", "÷ bound of the memory", "stream mode, µs",
        "Gloo on CUDA tensors, µs",
    ]  # fmt: skip
    return table(columns, rows)


def by_hand_table(results: Results) -> str:
    """Return the times of kernels that are written by hand, and of the interpreter on the same schedule."""
    rows = [
        [
            row["collective"], str(row["ranks"]), size_name(row["bytes"]), span(row["unisono_us"]), span(row["us"]),
            f"{median(row['unisono_us']) / median(row['us']):.2f}",
        ]
        for row in sorted(
            results.find(part="by_hand"), key=lambda row: (row["collective"], row["ranks"], row["bytes"])
        )
    ]  # fmt: skip
    columns = ["collective", "ranks", "bytes", "interpreter, µs", "written by hand, µs", "ratio"]
    return table(columns, rows)


def host_table(results: Results) -> str:
    """Return the time in which a call returns to the host."""
    rows = []
    for row in sorted(results.find(part="host"), key=lambda row: (row["mode"], row["ranks"], row["through"])):
        target = HOST_TARGETS_US.get(row["through"])
        reached = ("yes" if max(row["us"]) <= target else "no") if target else ""
        rows.append([
            row["mode"], str(row["ranks"]), row["through"], span(row["us"]), str(target or ""), reached,
        ])  # fmt: skip
    return table(["", "ranks", "through", "µs on the host", "target", "reached"], rows)


def facts(results: Results) -> str:
    """Return a paragraph about the machine and what does not fit into a table."""
    about = results.machine
    lines = []
    if about:
        gpus = "; ".join(about.get("gpus", [])) or about["device"]
        lines.append(
            f"Machine: {gpus}; {about['cores']} cores; torch {about['torch']}; CUDA {about.get('cuda', 'none')}; "
            f"{about['date']}; commit {about['commit']}."
        )
    if results.bytes_per_s:
        lines.append(f"A copy inside the memory of the GPU reads and writes {results.bytes_per_s / 1e12:.2f} TB/s.")
    for row in results.find(part="graph"):
        lines.append(f"A CUDA graph replays an all_reduce of 1 KiB on {row['ranks']} ranks in {span(row['us'])} µs.")
    for row in results.find(part="torch", mode="kernel"):
        lines.append(
            f"Through torch.distributed, an all_reduce of 1 KiB takes {span(row['us'])} µs on {row['ranks']} ranks."
        )
    return "\n".join(lines) or NOT_MEASURED


def collectives_as_text(result: dict[str, Any]) -> str:
    """Return all tables, for the terminal."""
    results = Results(result)
    tables = [facts(results), *(f"{mode} mode\n{all_reduce_table(results, mode)}" for mode in TARGETS_US)]
    tables += [collectives_table(results), by_hand_table(results), host_table(results)]
    return "\n\n".join(tables)


def training_table(result: dict[str, Any]) -> str:
    """Return the step times of training."""
    rows = []
    for case in sorted({row["case"] for row in result["rows"]}):
        of_case = {row["contender"]: row for row in result["rows"] if row["case"] == case}
        ours = of_case.get("unisono")
        for contender, row in of_case.items():
            runs = row.get("ms")
            rows.append([
                case, contender, str(row["ranks"]), span(runs) if runs else row.get("problem", ""),
                f"{median(runs) / median(ours['ms']):.2f}" if runs and ours and ours.get("ms") else "",
            ])  # fmt: skip
    return table(["", "backend", "ranks", "step, ms", "÷ Unisono"], rows)


def stress_table(result: dict[str, Any]) -> str:
    """Return the counts of the stress test."""
    rows = [
        [row["name"], row["mode"], str(row["ranks"]), f"{row['done']:,} of {row['wanted']:,}", str(row["failures"]),
         row.get("seed", ""), row.get("note", "")]
        for row in result["rows"]
    ]  # fmt: skip
    return table(["", "mode", "ranks", "done", "failures", "seed", "note"], [list(map(str, row)) for row in rows])


def torch_suite_table(result: dict[str, Any]) -> str:
    """Return the outcomes of PyTorch's tests: their numbers, and those that did not pass, with the reason."""
    found: dict[str, Any] = result.get("tests", {})
    if not found:
        return NOT_MEASURED
    outcomes = Counter(test["outcome"] for test in found.values())
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    others = [
        [f"`{name}`", test["outcome"], " ".join(test.get("why", "").split()).replace("|", "/")[:120]]
        for name, test in found.items()
        if test["outcome"] != "passed"
    ]
    return f"torch {result['torch']}: {counts}.\n\n" + table(["test", "outcome", "reason"], others)


def programs_table(result: dict[str, Any]) -> str:
    """Return the losses of the examples."""

    def shown(loss: Any) -> str:
        return loss if isinstance(loss, str) else f"{loss:.4f}"

    rows = [
        [row["name"], row["mode"], str(row["ranks"]), shown(row["loss"]), shown(row["expected"]),
         "yes" if row["agrees"] else "no", str(row["seconds"])]
        for row in result["rows"]
    ]  # fmt: skip
    return table(["program", "mode", "ranks", "last loss", "expected", "agrees", "s"], rows)


def codecs_table(result: dict[str, Any]) -> str:
    """Return the bandwidth of the codecs."""
    rows = [
        [row["codec"], row["action"], span(row["gb_per_s"]), span(row["percent"]),
         "yes" if min(row["percent"]) >= CODEC_TARGET_PERCENT else "no"]
        for row in result["rows"]
    ]  # fmt: skip
    return table(["codec", "action", "GB/s read and written", "% of a copy", "reached"], rows)


def _of_collectives(render: Callable[[Results], str]) -> Callable[[], str]:
    return lambda: render(Results(_stored("collectives.json") or {"rows": []}))


def _of_file(name: str, render: Callable[[dict[str, Any]], str]) -> Callable[[], str]:
    return lambda: render(_stored(name) or {"rows": []})


# The parts of docs/gpu.md, by the name in their marker.
PARTS: dict[str, Callable[[], str]] = {
    "gpu/machine": _of_collectives(facts),
    "gpu/all_reduce-kernel": _of_collectives(lambda results: all_reduce_table(results, "kernel")),
    "gpu/all_reduce-stream": _of_collectives(lambda results: all_reduce_table(results, "stream")),
    "gpu/collectives": _of_collectives(collectives_table),
    "gpu/by_hand": _of_collectives(by_hand_table),
    "gpu/host": _of_collectives(host_table),
    "gpu/training": _of_file("training.json", training_table),
    "gpu/programs": _of_file("programs.json", programs_table),
    "gpu/codecs": _of_file("codecs.json", codecs_table),
    "gpu/torch_suite": _of_file("torch_suite.json", torch_suite_table),
    "gpu/stress": _of_file("stress.json", stress_table),
}


def _stored(name: str) -> dict[str, Any] | None:
    path = STORED / name
    if not path.exists():
        return None
    stored: dict[str, Any] = json.loads(path.read_text())
    return stored


def page() -> str:
    """Return docs/gpu.md with its tables from the stored results."""
    return page_parts.fill(PAGE.read_text(encoding="utf-8"), lambda name: PARTS[name]())


def write() -> None:
    """Write docs/gpu.md."""
    PAGE.write_text(page(), encoding="utf-8")
