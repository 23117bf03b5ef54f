"""The memory of a GPU: parameters, gradients, optimiser, activations, buffers, on the stage that needs most.

Bytes that a layer keeps for the backward pass, for each token, in bf16 (h: features, a: width of all heads, q: width
of queries, keys and values, i: inner width of the MLP)::

    inputs of the two norms           2h + 2h         split by sequence parallelism
    inputs of qkv and of the MLP      2h + 2h         whole on every rank, or gathered again ("gathers")
    queries, keys, values             2q              split by tensor parallelism
    result of attention               2a              split
    gate, up, activation, product     8i (or 4i)      split; once for each expert that the token visits

The head adds 10 bytes for each logit: in bf16, in float32, and its gradient in float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unisono.planner.configurations import EVERYTHING, GATHERS, Configuration
from unisono.planner.models import Model
from unisono.planner.stages import layers_of_stages
from unisono.planner.state_memory import HeldMemory, Kind, with_buffers

LOGIT_BYTES = 10
GATHER_BYTES = 12  # per token and feature: two whole inputs, their gradients and the gradients of two outputs


@dataclass(frozen=True)
class Memory:
    """Bytes of a GPU."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float
    buffers: float = 0.0

    @property
    def total(self) -> float:
        """All bytes."""
        return self.parameters + self.gradients + self.optimizer + self.activations + self.buffers


def memory_of(model: Model, configuration: Configuration, sequence: int, kind: Kind) -> Memory:
    """Return the memory of a GPU of the stage that needs most."""
    layers = split_by_parameters(model, configuration.pp)
    stages = {0, configuration.pp - 1, *range(min(2, configuration.pp))}
    return max(
        (_of_stage(model, configuration, sequence, kind, layers[stage], stage) for stage in stages),
        key=lambda memory: memory.total,
    )


def split_by_parameters(model: Model, pp: int) -> tuple[int, ...]:
    """Return the layers of each stage, where the head counts as much as its parameters."""
    return layers_of_stages(model.layers, pp, model.embedding_parameters / model.layer_parameters)


def stage_parameters(model: Model, configuration: Configuration, layers: int, stage: int) -> tuple[int, list[int]]:
    """Return the parameters of a rank: those outside the layers, and those of each layer."""
    tp, ep = configuration.tp, configuration.ep
    layer = model.layer_parameters - model.experts * model.expert_parameters * (ep - 1) // ep
    ends = (stage == 0) + (stage == configuration.pp - 1)
    if ends == 2 and model.tied:
        ends = 1
    root = ends * model.embedding_parameters + (model.hidden if stage == configuration.pp - 1 else 0)
    return -(-root // tp), [-(-layer // tp)] * layers


def own_experts(model: Model, configuration: Configuration) -> int:
    """Return the parameters of a rank in the experts of a layer, where these are divided among ranks."""
    if configuration.ep == 1:
        return 0
    return model.experts * model.expert_parameters // configuration.ep // configuration.tp


def held(model: Model, configuration: Configuration, kind: Kind, layers: int, stage: int) -> HeldMemory:
    """Return the bytes of parameters, gradients, optimiser and buffers of a rank.

    Experts are replicated only dp / ep times, so that ZeRO shards them that often.
    """
    root, units = stage_parameters(model, configuration, layers, stage)
    zero, dp, ep = configuration.zero, configuration.dp, configuration.ep
    if ep == 1 or not zero:
        return with_buffers(zero, root, units, dp, kind)
    experts = own_experts(model, configuration)
    dense = with_buffers(zero, root, [unit - experts for unit in units], dp, kind)
    sparse = with_buffers(zero, 0, [experts] * layers, dp // ep, kind)
    return HeldMemory(
        *(
            getattr(dense, part) + getattr(sparse, part)
            for part in ("parameters", "gradients", "optimizer", "unit_buffers", "gradient_buffers")
        )
    )


def layer_bytes(model: Model, configuration: Configuration, tokens: int, recompute: str = "") -> float:
    """Return the bytes that a layer keeps for the backward pass of a micro-batch."""
    tp, recompute = configuration.tp, recompute or configuration.recompute
    split = tp if configuration.sequence_parallel else 1
    if recompute == EVERYTHING:
        return tokens * 2 * model.hidden / split
    visits = model.experts_per_token
    whole = 4 * model.hidden / (tp if recompute == GATHERS else 1)
    inner = visits * (8 if model.gated else 4) * model.intermediate
    rows = visits * 4 * model.hidden if model.experts > 1 else 0  # sent to experts, and their results
    inside = (2 * model.qkv_width + 2 * model.attention_width + inner + rows) / tp
    return tokens * (4 * model.hidden / split + whole + inside)


def _of_stage(
    model: Model, configuration: Configuration, sequence: int, kind: Kind, layers: int, stage: int
) -> Memory:
    tokens, tp = configuration.micro_batch * sequence, configuration.tp
    in_flight = min(configuration.micro_batches, configuration.pp - stage)
    kept = in_flight * layers * layer_bytes(model, configuration, tokens)
    moment = GATHER_BYTES * tokens * model.hidden if tp > 1 else 0.0
    if configuration.recompute == EVERYTHING:
        moment += layer_bytes(model, replace(configuration, recompute=GATHERS), tokens)
    if stage == configuration.pp - 1:
        moment = max(moment, LOGIT_BYTES * tokens * model.vocabulary / tp)
    state = held(model, configuration, kind, layers, stage)
    buffers = state.unit_buffers + state.gradient_buffers
    return Memory(state.parameters, state.gradients, state.optimizer, kept + moment, buffers)
