"""Grades the planner on training runs that others published: other programs, machines, networks and models.

published_training.csv quotes the numbers of six public tables, with their place in the source (docs/predictions.md
names the sources). The rows of the set "first" were graded before anything was changed because of them. The rows of
the set "second" were kept for a grade after that, and for nothing else.
"""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from unisono import networks
from unisono.networks import Network
from unisono.planner import MACHINES, PRESETS, Candidate, Cluster, Configuration, Job, Machine, Model, Program, evaluate
from unisono.planner.programs import DEFAULT
from unisono.planner.state_memory import MIXED_ADAM, Kind

FILE = Path(__file__).parent / "published_training.csv"
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
                number["dp"], number["tp"], number["pp"], 1, bool(number["sp"]), number["zero"], number["micro_batch"],
                number["micro_batches"], each["recompute"],
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
    job = Job(MODELS[row.model], cluster, row.configuration.sequences, row.sequence, KINDS.get(row.source, MIXED_ADAM))
    return evaluate(job, row.configuration)


def ratios(rows: Iterable[Row], program: Program = DEFAULT) -> dict[tuple[str, str], list[float]]:
    """Return predicted / measured rates of each source and machine."""
    found = defaultdict(list)
    for row in rows:
        found[row.source, row.machine].append(predict(row, program).tokens_s_gpu / row.tokens_s_gpu)
    return dict(found)


def median_error(values: Sequence[float]) -> float:
    """Return the median of |ratio - 1|."""
    return statistics.median(abs(value - 1) for value in values)
