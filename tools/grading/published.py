"""Grades the planner on training runs that others published: other programs, machines, networks and models.

published_training.csv quotes the numbers of six public tables, with their place in the source (docs/predictions.md
names the sources). The rows of the set "first" were graded before anything was changed because of them. The rows of
the set "second" were kept for a grade after that, and for nothing else.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from grading.descent import descend, robust_loss
from grading.grade import Grade
from unisono import networks
from unisono.networks import Network
from unisono.planner import (
    MACHINES,
    PRESETS,
    Candidate,
    Cluster,
    Configuration,
    Job,
    Machine,
    Model,
    Program,
    evaluate,
)
from unisono.planner.programs import DEFAULT, PROGRAMS
from unisono.planner.state_memory import MIXED_ADAM, Kind

FILE = Path(__file__).parent / "published_training.csv"
FIRST = "first"
EVERY = 4  # of the runs of the first set, one is used for the fit
CONSTANTS = ("matmul_share", "attention_share", "far_share", "half_tokens", "hidden_cost")
START = (0.8, 0.6, 0.6, 300.0, 0.3)
ASSUMED = (
    "Networks are the presets `dgx-a100` and `dgx-h100`, with the ranks and NICs of a host that the source names "
    "(KempnerForge names only the kind: one NIC of 400 Gbit/s for each GPU is assumed). Runs "
    "with a kind of recomputation that the planner does not know (selective), in float8, with context parallelism or "
    "with hybrid sharding are not in the file."
)
# Parameters in float32 are gathered in bf16, and gradients are reduced in float32: 16 bytes, of which 2 and 4 travel.
SHARDED = Kind(2, 4, 10)
KINDS = {"llm-foundry": SHARDED, "kempnerforge": SHARDED, "torchtitan": SHARDED}


def _mpt(size: str, layers: int, hidden: int, heads: int) -> Model:
    return Model(f"mpt-{size}", layers, hidden, heads, 50368, tied=True, gated=False, rotary=False)


def _gpt(layers: int, hidden: int) -> Model:
    return Model(f"bs-{layers}x{hidden}", layers, hidden, 64, 250880, tied=True, gated=False, rotary=False)


MODELS = PRESETS | {
    model.name: model
    for model in (
        _mpt("125m", 12, 768, 12), _mpt("350m", 24, 1024, 16), _mpt("760m", 24, 1536, 12), _mpt("1b", 24, 2048, 16),
        _mpt("3b", 32, 2560, 20), _mpt("7b", 32, 4096, 32), _mpt("13b", 40, 5120, 40), _mpt("30b", 48, 7168, 56),
        _mpt("70b", 80, 8192, 64),
        _gpt(72, 14336), _gpt(84, 13824), _gpt(96, 12288), _gpt(84, 13312), _gpt(78, 13824),
        Model("kf-13b", 40, 5120, 40, 128256, 8, 17920), Model("kf-175b", 96, 12288, 96, 128256, 8, 39680),
        Model("llama2-70b", 80, 8192, 64, 32000, 8, 28672), Model("ibm-34b", 48, 8192, 64, 32000, 8, 22016),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A published run."""

    source: str
    set: str
    where: str
    machine: str
    model: str
    sequence: int
    configuration: Configuration
    tokens_s_gpu: float
    memory_gb: float | None


def read_rows(path: Path = FILE) -> list[Row]:
    """Return the quoted runs."""
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for each in csv.DictReader(file):
            number = {key: int(each[key]) for key in ("dp", "tp", "pp", "sp", "zero", "micro_batch", "micro_batches")}
            configuration = Configuration(
                number["dp"], number["tp"], number["pp"], 1, bool(number["sp"]), number["zero"],
                number["micro_batch"], number["micro_batches"], each["recompute"],
            )  # fmt: skip
            memory = float(each["memory_gb"]) if each["memory_gb"] else None
            place = (each["source"], each["set"], each["where"], each["machine"], each["model"])
            rows.append(Row(*place, int(each["sequence"]), configuration, float(each["tokens_s_gpu"]), memory))
    return rows


@cache
def network_of(source: str, machine: str) -> Network:
    """Return the network of a source, as far as the source describes it: ranks and NICs of a host."""
    base = networks.load("dgx-a100" if machine.startswith("a100") else "dgx-h100")
    per_host, count, gbit = {
        ("bigscience", "a100"): (8, 4, 100),
        ("kempnerforge", "h200"): (4, 4, 400),
        ("fms-fsdp", "a100"): (8, 2, 200),
        ("fms-fsdp", "h100"): (8, 2, 400),
    }.get((source, machine), (8, 8, 200 if machine.startswith("a100") else 400))
    # The presets reach 96 % of the rate of a NIC.
    nics = replace(base.nics, count=count, bandwidth=gbit / 8 * 1e9 * 0.96)
    return replace(base, ranks_per_host=per_host, nics=nics)


def machine_of(name: str) -> Machine:
    """Return an accelerator; torchtitan was measured on H100 with HBM2e."""
    if name == "h100-500w":
        return replace(MACHINES["h100"], name=name, memory_bytes=96e9, memory_bandwidth=2.4e12)
    return MACHINES[name]


def predict(row: Row, program: Program = DEFAULT) -> Candidate:
    """Return the prediction for a run."""
    network, machine = network_of(row.source, row.machine), machine_of(row.machine)
    cluster = Cluster(row.configuration.gpus, network, machine, program=program)
    job = Job(
        MODELS[row.model], cluster, row.configuration.sequences, row.sequence, KINDS.get(row.source, MIXED_ADAM)
    )
    return evaluate(job, row.configuration)


def ratio(row: Row, program: Program = DEFAULT) -> float:
    """Return the predicted rate of a run / its published rate."""
    return predict(row, program).tokens_s_gpu / row.tokens_s_gpu


def program_with(constants: Sequence[float]) -> Program:
    """Return the program with these constants."""
    return replace(PROGRAMS["tuned"], **dict(zip(CONSTANTS, constants, strict=True)))


def chosen_for_fit(rows: Sequence[Row]) -> list[Row]:
    """Return the runs that the constants are fitted to: every fourth of the first set."""
    return [row for row in rows if row.set == FIRST][::EVERY]


def fit(rows: Sequence[Row]) -> tuple[float, ...]:
    """Return the constants that minimise the errors, large errors counted alike."""
    return descend(lambda values: robust_loss(ratio(row, program_with(values)) for row in rows), START)


def grades(_: Path) -> list[Grade]:
    """Grade the programs of the planner on the runs that no constant was fitted to, source by source."""
    rows = read_rows()
    fitted = chosen_for_fit(rows)
    tuned = program_with(fit(fitted))
    used = set(fitted)
    rest = [row for row in rows if row not in used]
    constants = "Constants: " + ", ".join(f"`{name}` {getattr(tuned, name):.3g}" for name in CONSTANTS)
    places = ", ".join(f"{row.source} {row.where}" for row in fitted)
    found = []
    for source in dict.fromkeys(row.source for row in rest):
        own = [row for row in rest if row.source == source]
        found.append(Grade(f"{source}: tokens/s/GPU", _errors(own, tuned), only_in_summary=True))
    measured = [row for row in rest if row.memory_gb is not None]
    memory = [abs(predict(row, tuned).memory.total / 1e9 / row.memory_gb - 1) for row in measured if row.memory_gb]
    found.append(Grade("published runs: memory", memory, only_in_summary=True))
    found.append(
        Grade(
            "published runs: tokens/s/GPU", _errors(rest, tuned), (), constants + ". " + ASSUMED,
            f"Fitted to every {EVERY}th run of the first set: {len(fitted)} runs ({places}).",
            f"With the constants of nanotron, the median error on the same runs is "
            f"{statistics.median(_errors(rest, PROGRAMS['nanotron'])):.1%}.",
        )
    )  # fmt: skip
    return found


def _errors(rows: Iterable[Row], program: Program) -> list[float]:
    return [abs(ratio(row, program) - 1) for row in rows]
