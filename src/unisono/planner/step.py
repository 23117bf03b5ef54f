"""The time of a training step: what each part takes, what is hidden, and the bubble of the pipeline.

::

    stage       1F1B with m micro-batches: the first passes all stages, the slowest stage sets the pace of the others
    0   F F F . B F B F B . B B     step = sum over stages of t + (m - 1) * slowest t + messages + gradients + update
    1     F F B F B F B . B
    2       F B F B F B

A layer takes the time of the GPU or the time in which its host launches it, whichever is longer. Without ZeRO, the
gradients are reduced during the last backward pass; the stages of ZeRO reduce and gather after it (stage 3: during
it, one unit ahead).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from unisono.planner.clusters import Cluster
from unisono.planner.compute import compute_times, update_s
from unisono.planner.configurations import Configuration
from unisono.planner.memory import own_experts, split_by_parameters, stage_parameters
from unisono.planner.models import Model
from unisono.planner.state_memory import Kind
from unisono.planner.traffic import (
    Traffic,
    data_traffic,
    expert_traffic,
    gathers_again,
    pipeline_traffic,
    tensor_traffic,
)

BACKWARD_SHARE = 2 / 3  # of the time of a micro-batch


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step, on the slowest stage; they add up to the step. ``hidden`` is not part of it.

    ``compute``, ``recompute``: of the GPU. ``launch``: waiting for the host to launch kernels.
    ``tensor``, ``expert``, ``pipeline``, ``data``: collectives and messages that nothing hides.
    ``bubble``: waiting for other stages. ``update``: the optimiser. ``hidden``: collectives during computation.
    """

    compute: float
    recompute: float
    launch: float
    tensor: float
    expert: float
    pipeline: float
    bubble: float
    data: float
    update: float
    hidden: float

    def parts(self) -> dict[str, float]:
        """Return the parts of the step by name, without ``hidden``."""
        return {name: value for name, value in asdict(self).items() if name != "hidden"}

    @property
    def total(self) -> float:
        """The time of the step."""
        return sum(self.parts().values())

    @property
    def communication(self) -> float:
        """The time of communication that nothing hides."""
        return self.tensor + self.expert + self.pipeline + self.data


def step_times(
    model: Model, configuration: Configuration, sequence: int, cluster: Cluster, kind: Kind
) -> tuple[StepTimes, list[Traffic]]:
    """Return the times of a step and its collectives."""
    machine, program, wiring = cluster.machine, cluster.program, cluster.wiring
    times = compute_times(model, configuration, sequence, machine, program, kind)
    m, pp, zero = configuration.micro_batches, configuration.pp, configuration.zero
    tensor = tensor_traffic(model, configuration, sequence, wiring, 1)
    tensor_layer = sum(each.time_s for each in tensor) / m
    latency_layer = sum(each.latency_s for each in tensor) / m  # a launch does not hide it: the host waits, too
    expert_layer = sum(each.time_s for each in expert_traffic(model, configuration, sequence, wiring, 1)) / m
    gpu_s = times.layer_s + times.again_s + tensor_layer + expert_layer
    launch_s = _launch_s(configuration, program.launch_s, program.peer_s)
    layer_s = max(gpu_s, launch_s + latency_layer)
    layers = split_by_parameters(model, pp)
    stage_s = [count * layer_s for count in layers]
    stage_s[-1] += times.head_s
    slowest = max(range(pp), key=stage_s.__getitem__)
    count, has_head = layers[slowest], slowest == pp - 1
    messages, message_s = pipeline_traffic(model, configuration, sequence, wiring)
    waited_s = (2 * (pp - 1) + (m - 1) * (2 if pp == 2 else 4)) * _stall_s(cluster) if pp > 1 else 0.0
    most, first = (max(layers), layers.index(max(layers)))
    root, units = stage_parameters(model, configuration, most, first)
    experts = most * own_experts(model, configuration)
    dense = root + sum(units) - experts
    reduced = data_traffic(configuration, kind, wiring, dense, most)
    reduced += data_traffic(configuration, kind, wiring, experts, most, configuration.ep)
    data_s = sum(each.time_s for each in reduced)
    moved_s = data_s - (sum(each.latency_s for each in reduced) if zero != 3 else 0.0)
    hides_s = _hides_s(configuration, stage_s[slowest], program.overlaps)
    if zero == 3:  # the first unit of a micro-batch is gathered, and the last one reduced, with nothing to hide it
        moved_s *= 1 - 1 / (m * (most + 1))
    hidden_s = min(moved_s, hides_s)
    step = StepTimes(
        compute=m * (count * times.layer_s + has_head * times.head_s),
        recompute=m * count * times.again_s,
        launch=m * count * (layer_s - gpu_s),
        tensor=m * count * tensor_layer,
        expert=m * count * expert_layer,
        pipeline=2 * (pp - 1 + (m - 1) * program.blocks) * message_s + waited_s,
        bubble=sum(stage_s) - stage_s[slowest],
        data=data_s - (1 - program.hidden_cost) * hidden_s,
        update=update_s(dense, configuration, machine) + update_s(experts, configuration, machine, configuration.ep),
        hidden=hidden_s,
    )
    own = tensor_traffic(model, configuration, sequence, wiring, count)
    own += expert_traffic(model, configuration, sequence, wiring, count)
    return step, [*own, *messages, *reduced]


def _hides_s(configuration: Configuration, stage_s: float, overlaps: bool) -> float:
    """Return the time of the step that can hide the collectives of data parallelism."""
    if configuration.zero == 3 or (configuration.zero == 2 and overlaps):
        return configuration.micro_batches * stage_s  # every micro-batch gathers or reduces
    if configuration.zero == 1 and overlaps:
        return stage_s  # gradients during the last backward pass, parameters during the next forward pass
    return BACKWARD_SHARE * stage_s if configuration.zero == 0 else 0.0


def _launch_s(configuration: Configuration, launch_s: float, peer_s: float) -> float:
    """Return the time in which the host launches a layer, forward and backward."""
    if configuration.tp == 1:
        return 0.0
    return launch_s + (peer_s * configuration.tp if gathers_again(configuration) else 0.0)


def _stall_s(cluster: Cluster) -> float:
    leaf = cluster.wiring.leaf_hosts
    hosts = cluster.network.hosts_of(cluster.gpus)
    return cluster.program.stall_s if leaf is not None and hosts > leaf else 0.0
