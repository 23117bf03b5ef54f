"""Plans: all combinations that fit, sorted by tokens per second and GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unisono.errors import UsageError
from unisono.networks import Network
from unisono.planner import messages
from unisono.planner.choices import choose
from unisono.planner.clusters import Cluster, Machine, find_cluster
from unisono.planner.configurations import Configuration, admissible
from unisono.planner.memory import Memory, memory_of
from unisono.planner.models import Model, find_model
from unisono.planner.programs import DEFAULT, Program
from unisono.planner.quantities import gigabytes, read_tokens
from unisono.planner.state_memory import KINDS, MIXED_ADAM, Kind
from unisono.planner.step import StepTimes, step_times
from unisono.planner.traffic import Traffic

TOKENS = 4 * 2**20
SEQUENCE = 4096


@dataclass(frozen=True)
class Candidate:
    """A configuration with its memory, times and collectives."""

    configuration: Configuration
    memory: Memory
    times: StepTimes
    traffic: tuple[Traffic, ...]
    tokens_s_gpu: float
    mfu: float

    def as_data(self) -> dict[str, Any]:
        """Return everything as plain data."""
        memory = asdict(self.memory) | {"total": self.memory.total}
        times = asdict(self.times) | {"step": self.times.total, "communication": self.times.communication}
        return {
            "configuration": asdict(self.configuration), "tokens_s_gpu": self.tokens_s_gpu, "mfu": self.mfu,
            "memory_bytes": memory, "seconds": times, "collectives": [each.as_data() for each in self.traffic],
        }  # fmt: skip


@dataclass(frozen=True)
class Job:
    """What is planned: a model on a cluster, the sequences of a step and their length, and bytes per parameter."""

    model: Model
    cluster: Cluster
    sequences: int
    sequence: int
    kind: Kind = MIXED_ADAM

    @property
    def tokens(self) -> int:
        """The tokens of a step."""
        return self.sequences * self.sequence


@dataclass(frozen=True)
class Plan:
    """The combinations that fit, fastest first; iterate over it, or read ``best``.

    ``job``: the model, the cluster and the batch. ``candidates``: the combinations with their memory and times.
    ``admissible``: the number of combinations that divide the model and the batch, whether they fit or not.
    """

    job: Job
    candidates: tuple[Candidate, ...] = field(repr=False)
    admissible: int

    @property
    def best(self) -> Candidate:
        """The fastest combination."""
        return self.candidates[0]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)


def plan(
    model: Model | str | Path, cluster: Cluster | None = None, *, gpus: int = 8, network: Network | str = "dgx-h100",
    tokens: str | int = TOKENS, sequence: int = 0, memory: str | float = 0, machine: Machine | str = "",
    program: Program | str = DEFAULT, kind: Kind | str = MIXED_ADAM,
) -> Plan:  # fmt: skip
    """Return the combinations of parallelism with which a model can be trained on a cluster, fastest first.

    ``model``: a ``Model``, the name of a preset, a Hugging Face config.json, or numbers (``"layers=32,..."``).
    ``cluster``: a ``Cluster``; otherwise ``gpus``, ``network``, ``machine``, ``memory`` and ``program`` describe it.
    ``tokens``: of a step, such as "4M" (4 * 2**20). ``sequence``: the length of a sequence (default: that of the
    model, at most 4096). ``kind``: bytes per parameter (default: mixed precision with Adam).
    """
    if not isinstance(cluster, Cluster | None):
        raise UsageError(messages.NO_CLUSTER(found=repr(cluster)[:40]))
    chosen = kind if isinstance(kind, Kind) else choose(str(kind), KINDS, messages.NO_KIND)
    found = find_cluster(gpus, network, memory, machine, program) if cluster is None else cluster
    return plan_job(job_of(find_model(model), found, tokens, sequence, chosen))


def job_of(model: Model, cluster: Cluster, tokens: str | int, sequence: int = 0, kind: Kind = MIXED_ADAM) -> Job:
    """Return what to plan; raise UsageError where a number is out of range."""
    if isinstance(sequence, bool) or not isinstance(sequence, int) or not 0 <= sequence <= 2**24:
        raise UsageError(messages.OUT_OF_RANGE(what="sequence", least=1, most=2**24, found=repr(sequence)[:40]))
    length = sequence or min(model.sequence, SEQUENCE)
    count = read_tokens(tokens)
    if count < length:
        raise UsageError(messages.TOKENS_TOO_FEW(tokens=count, sequence=length))
    if count > 2**40:
        raise UsageError(messages.OUT_OF_RANGE(what="tokens", least=length, most=2**40, found=count))
    return Job(model, cluster, count // length, length, kind)


def plan_job(job: Job) -> Plan:
    """Return the plan; raise UsageError where no combination is admissible, or none fits."""
    configurations = list(admissible(job.model, job.cluster.gpus, job.sequences))
    if not configurations:
        model = job.model
        raise UsageError(
            messages.NOTHING_ADMISSIBLE(
                gpus=job.cluster.gpus, layers=model.layers, heads=model.heads, sequences=job.sequences
            )
        )
    sizes = [(each, memory_of(job.model, each, job.sequence, job.kind)) for each in configurations]
    fitting = [(each, memory) for each, memory in sizes if memory.total <= job.cluster.usable]
    if not fitting:
        smallest, memory = min(sizes, key=lambda pair: pair[1].total)
        raise UsageError(
            messages.NOTHING_FITS(
                count=len(sizes), usable=gigabytes(job.cluster.usable), memory=gigabytes(job.cluster.memory),
                least=gigabytes(memory.total), smallest=smallest,
            )
        )  # fmt: skip
    return Plan(job, ranked(evaluate(job, each, memory) for each, memory in fitting), len(configurations))


def evaluate(job: Job, configuration: Configuration, memory: Memory | None = None) -> Candidate:
    """Return the memory, times and collectives of one configuration, whether it fits or not.

    Raise UsageError where it does not divide the model.
    """
    if memory is None:
        configuration.check(job.model)
        memory = memory_of(job.model, configuration, job.sequence, job.kind)
    times, traffic = step_times(job.model, configuration, job.sequence, job.cluster, job.kind)
    rate = configuration.sequences * job.sequence / times.total / configuration.gpus
    mfu = rate * job.model.token_flops(job.sequence) / job.cluster.machine.peak_flops
    return Candidate(configuration, memory, times, tuple(traffic), rate, mfu)


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates, fastest first; of equally fast ones, the one that needs less memory."""
    return tuple(sorted(candidates, key=lambda each: (-each.tokens_s_gpu, each.memory.total)))
