"""The time that a GPU computes: matrix products and attention at measured rates, the rest at the speed of the memory.

Numbers of a layer that elementwise operations read and write, for each token, forward and backward (counted from the
operations of an eager program, in bf16; the memory delivers 80 % of its bandwidth)::

    two norms and two residual sums            22 h
    rotary positions of queries and keys       48 h   (none without them)
    layout of queries, keys and values          8 h
    gated MLP                                  18 i   (8 i without a gate), for each expert that the token visits

The loss reads or writes each logit 12 times, in float32: cast, maximum, difference, exponential, sum, and the
gradient with its cast. The optimiser moves 120 bytes for each parameter: clipping, two averages, the update
in float32, the copy in bf16.

A causal attention kernel makes two products of half a matrix forward and five backward, one of which computes the
scores again. Products of few tokens do not fill the GPU: with ``half_tokens`` they take twice the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from unisono.planner.clusters import Machine
from unisono.planner.configurations import EVERYTHING, Configuration
from unisono.planner.models import Model
from unisono.planner.programs import Program
from unisono.planner.state_memory import Kind

MEMORY_SHARE = 0.8
LOSS_PASSES = 12
ATTENTION_PRODUCTS = 7 / 6  # of those that a model counts: the scores are computed again in the backward pass
UPDATE_BYTES = 120
# Bytes that move where a gradient is added to the sum: both are read and the sum is written.
ADDED_BYTES = {2: 6, 4: 12, 6: 10}


@dataclass(frozen=True)
class ComputeTimes:
    """Seconds of a GPU for one micro-batch: of a layer, of computing it again, and of head and loss."""

    layer_s: float
    again_s: float
    head_s: float


def compute_times(
    model: Model, configuration: Configuration, sequence: int, machine: Machine, program: Program, kind: Kind
) -> ComputeTimes:
    """Return the times of one micro-batch, forward and backward."""
    tokens, tp = configuration.micro_batch * sequence, configuration.tp
    flops = machine.matmul_flops * program.matmul_share / (1 + program.half_tokens / tokens)
    memory = machine.memory_bandwidth * MEMORY_SHARE
    split = tp if configuration.sequence_parallel else 1
    inner = model.experts_per_token * (18 if model.gated else 8) * model.intermediate
    numbers = 22 * model.hidden / split + ((56 if model.rotary else 8) * model.hidden + inner) / tp
    products_s = tokens * model.layer_flops / tp / flops
    attention_s = tokens * model.score_flops(sequence) / tp / flops
    if program.attention_share is not None:
        attention_flops = machine.attention_flops * program.attention_share
        attention_s = tokens * ATTENTION_PRODUCTS * model.score_flops(sequence) / tp / attention_flops
    elementwise_s = 2 * tokens * numbers / memory
    # Each micro-batch adds its gradients to those before it.
    parameters = model.layer_parameters / tp / configuration.ep if model.experts > 1 else model.layer_parameters / tp
    added = ADDED_BYTES.get(kind.gradients, 3 * kind.gradients) if configuration.micro_batches > 1 else 0
    adding_s = added * parameters / memory
    again_s = (products_s + elementwise_s) / 3 + attention_s * 2 / 7 if configuration.recompute == EVERYTHING else 0.0
    logits = tokens * model.vocabulary / tp
    head_s = 6 * logits * model.hidden / flops + 4 * LOSS_PASSES * logits / memory
    return ComputeTimes(products_s + attention_s + elementwise_s + adding_s, again_s, head_s)


def update_s(parameters: float, configuration: Configuration, machine: Machine, ep: int = 1) -> float:
    """Return the time of the optimiser for the parameters of a rank, which are replicated dp / ``ep`` times."""
    share = parameters / (configuration.dp // ep if configuration.zero else 1)
    return UPDATE_BYTES * share / (machine.memory_bandwidth * MEMORY_SHARE)
