"""Grades the planner on training_configurations.csv: 1,032 measured runs of two Llama-style models on H100.

The models follow from the file: 1.34 B parameters are 16 layers of 2048 features with tied embeddings, and 8.86 B are
32 layers of 4096 features, both with a vocabulary of 131,072 words. The operations per token in the file confirm it.

The file does not name two properties of a run, which its memory shows. Runs with pipelines, and runs on more than 32
hosts, gather the inputs of tensor-parallel layers again in the backward pass ("gathers"); other runs keep them. Runs
that do not fit into 80 GB otherwise compute each layer again ("full").
"""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grading.descent import descend, robust_loss
from grading.grade import Grade, Pick
from unisono import networks
from unisono.planner import Candidate, Cluster, Configuration, Job, Model, Program, evaluate
from unisono.planner.clusters import MACHINES
from unisono.planner.configurations import EVERYTHING, GATHERS, NOTHING
from unisono.planner.programs import PROGRAMS
from unisono.planner.state_memory import MIXED_ADAM_ACCUMULATED

FILE = "training_configurations.csv"
SEQUENCE = 4096
MODELS = {
    "1.34": Model("1.34 B", 16, 2048, 32, 131072, intermediate=8192, tied=True),
    "8.86": Model("8.86 B", 32, 4096, 32, 131072, intermediate=14336),
}
CONSTANTS = ("matmul_share", "launch_s", "peer_s", "stall_s", "far_share")
START = (0.65, 0.004, 0.0025, 0.3, 0.5)
EVERY = 21  # of the runs, one is used for the fit
BEST_SHARE = 0.95
ASSUMED = (
    "The network is the preset `dgx-h100`. Two settings that the file does not name are inferred from the memory of "
    "the runs: with pipelines, and on more than 32 hosts, inputs of tensor-parallel layers are gathered again in the "
    "backward pass; what does not fit into 80 GB otherwise computes its layers again. Passes of elementwise "
    "operations are counted, not fitted (src/unisono/planner/compute.py)."
)


@dataclass(frozen=True)
class Run:
    """A measured run: its line in the file, its configuration, and what was measured."""

    line: int
    model: str
    nodes: int
    configuration: Configuration
    tokens_s_gpu: float
    memory_gb: float

    @property
    def name(self) -> str:
        """The group of the run: a model and a number of hosts."""
        return f"{self.model} B on {self.nodes} hosts"


def read_runs(path: Path) -> list[Run]:
    """Return the runs of the file, except for nine whose columns contradict each other.

    Their dp * mbs * gradacc is not the number of sequences of a step.
    """
    runs = []
    with path.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), 2):
            number = {key: int(row[key]) for key in ("nodes", "mbs", "gradacc", "dp", "pp", "tp", "zero")}
            configuration = Configuration(
                number["dp"], number["tp"], number["pp"], 1, number["tp"] > 1, number["zero"], number["mbs"],
                number["gradacc"],
            )  # fmt: skip
            if configuration.sequences != int(row["gbs_seq"]):
                continue
            measured = float(row["tok_s_gpu"]), float(row["mem_gb"])
            runs.append(Run(line, row["model_B"], number["nodes"], configuration, *measured))
    return runs


def program(constants: Sequence[float] = START) -> Program:
    """Return the program that was measured, with these constants."""
    return replace(PROGRAMS["nanotron"], **dict(zip(CONSTANTS, constants, strict=True)))


def predict(run: Run, measured: Program) -> Candidate:
    """Return the prediction for a run."""
    cluster = Cluster(8 * run.nodes, networks.load("dgx-h100"), MACHINES["h100"], program=measured)
    sequences = run.configuration.sequences
    job = Job(MODELS[run.model], cluster, sequences, SEQUENCE, MIXED_ADAM_ACCUMULATED)
    again = run.configuration.pp > 1 or run.nodes > (cluster.wiring.leaf_hosts or run.nodes)
    first = evaluate(job, replace(run.configuration, recompute=GATHERS if again else NOTHING))
    if first.memory.total <= cluster.memory:
        return first
    return evaluate(job, replace(run.configuration, recompute=EVERYTHING))


def chosen_for_fit(runs: Sequence[Run], first: int = 0) -> list[Run]:
    """Return the runs that the constants are fitted to: every 21st of the file, from the ``first``."""
    return list(runs[first::EVERY])


def fit(runs: Sequence[Run]) -> tuple[float, ...]:
    """Return the constants that minimise the errors of tokens/s/GPU, large errors counted alike."""

    def loss(values: Sequence[float]) -> float:
        constants = program(values)
        return robust_loss(predict(run, constants).tokens_s_gpu / run.tokens_s_gpu for run in runs)

    return descend(loss, START)


def picks(runs: Sequence[Run], measured_program: Program) -> list[Pick]:
    """Return the choice of the planner for each model and number of hosts, among the measured configurations."""
    groups = defaultdict(list)
    for run in runs:
        groups[run.model, run.nodes].append(run)
    result = []
    for _, members in sorted(groups.items()):
        measured = defaultdict(list)
        for run in members:
            measured[run.configuration].append(run.tokens_s_gpu)
        rates = {configuration: statistics.median(values) for configuration, values in measured.items()}
        predictions = {run.configuration: predict(run, measured_program) for run in members}
        usable = Cluster(8, networks.load("dgx-h100"), MACHINES["h100"]).usable
        fits = {each: found.memory.total <= usable for each, found in predictions.items()}
        picked = max(predictions, key=lambda each: (fits[each], predictions[each].tokens_s_gpu))
        best = max(rates, key=rates.__getitem__)
        result.append(Pick(members[0].name, str(picked), str(best), rates[best] / rates[picked]))
    return result


def grades(data: Path) -> list[Grade]:
    """Grade tokens/s/GPU and memory on the runs that the constants were not fitted to."""
    runs = read_runs(data / FILE)
    fitted = chosen_for_fit(runs)
    constants = fit(fitted)
    nanotron = program(constants)
    lines = {run.line for run in fitted}
    rest = [run for run in runs if run.line not in lines]
    predictions = [predict(run, nanotron) for run in rest]
    pairs = list(zip(predictions, rest, strict=True))
    rate_errors = [abs(found.tokens_s_gpu / run.tokens_s_gpu - 1) for found, run in pairs]
    memory_errors = [abs(found.memory.total / 1e9 / run.memory_gb - 1) for found, run in pairs]
    choice = picks(rest, nanotron)
    reached = sum(1 / pick.regret >= BEST_SHARE for pick in choice)
    unstalled = program(
        [0.0 if name == "stall_s" else value for name, value in zip(CONSTANTS, constants, strict=True)]
    )
    without = statistics.median(abs(predict(run, unstalled).tokens_s_gpu / run.tokens_s_gpu - 1) for run in rest)
    parameters = "Constants: " + ", ".join(
        f"`{name}` {value:.4g}" for name, value in zip(CONSTANTS, constants, strict=True)
    )
    numbers = ", ".join(str(run.line) for run in sorted(fitted, key=lambda run: run.line))
    return [
        Grade(
            "H100, training: tokens/s/GPU", rate_errors, choice, parameters + ". " + ASSUMED,
            f"Fitted to every {EVERY}st run: {len(fitted)} of {len(runs)}, lines {numbers} of the file.",
            f"For {reached} of {len(choice)} groups the configuration ranked first reaches at least "
            f"{BEST_SHARE:.0%} of the measured best. " + _remarks(pairs, without),
            {"median": 0.12, "best": 0.9}, 1 / BEST_SHARE,
        ),
        Grade(
            "H100, training: memory", memory_errors, (),
            "No constant is fitted: the formulas of src/unisono/planner/memory.py, with gradients that add up in "
            "float32.", "", "", {"median": 0.1},
        ),
    ]  # fmt: skip


def _remarks(pairs: Sequence[tuple[Candidate, Run]], without: float) -> str:
    slow = [run for found, run in pairs if run.tokens_s_gpu < found.tokens_s_gpu / 1.5]
    stages = sum(run.configuration.pp > 1 for run in slow)
    return (
        f"Where predictions are wrong: {len(slow)} of {len(pairs)} runs took more than 1.5 times the predicted time; "
        f"{stages} of them have pipelines, in which some runs wait about 0.3 s for every message between stages and "
        "others, with the same configuration, do not. The file has no column that tells them apart. On more than 32 "
        "hosts, the size of a leaf of the network, nearly all runs wait, and the planner predicts that with "
        f"`stall_s`; without this constant the median error is {without:.1%}."
    )
