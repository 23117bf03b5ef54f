"""Steps of tensor-parallel layers: batch 2, sequence 8, 16 features, float32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unisono.parallel import (
    ColumnLinear,
    Group,
    Log,
    ParallelAttention,
    ParallelBlock,
    ParallelMLP,
    ParallelTransformer,
    RowLinear,
    Split,
    record,
)

RANKS = 4
BATCH, LENGTH, FEATURES, HEADS, WORDS, LAYERS, LONGEST = 2, 8, 16, 4, 32, 1, 8


def _step(module: nn.Module, x: Tensor, *arguments: Any) -> Log:
    with record() as log:
        module(x.requires_grad_(), *arguments).sum().backward()
    return log


def _input(features: int = FEATURES) -> Tensor:
    return torch.randn(BATCH, LENGTH, features)


def column(group: Group) -> Log:
    """Return the collectives of a ColumnLinear."""
    return _step(ColumnLinear(FEATURES, 4 * FEATURES, group), _input())


def row(group: Group) -> Log:
    """Return the collectives of a RowLinear."""
    layer = RowLinear(4 * FEATURES, FEATURES, group)
    return _step(layer, _input(layer.split.length))


def mlp(group: Group) -> Log:
    """Return the collectives of an MLP."""
    return _step(ParallelMLP(FEATURES, 4 * FEATURES, group), _input())


def attention(group: Group) -> Log:
    """Return the collectives of attention."""
    return _step(ParallelAttention(FEATURES, HEADS, group), _input())


def transformer(group: Group, sequence_parallel: bool = False) -> Log:
    """Return the collectives of a language model with one block."""
    model = ParallelTransformer(WORDS, FEATURES, HEADS, LAYERS, LONGEST, group, sequence_parallel=sequence_parallel)
    ids = torch.randint(WORDS, (BATCH, LENGTH))
    with record() as log:
        model(ids, ids.roll(-1)).backward()
    return log


def sequence_parallel_block(group: Group) -> Log:
    """Return the collectives of a sequence-parallel block."""
    block = ParallelBlock(FEATURES, HEADS, group, sequence_parallel=True)
    return _step(block, Split(group, 1, LENGTH).cut(_input()), LENGTH)


def activations(group: Group) -> str:
    """Return a table of the bytes that a block keeps for the backward pass, alone and in parallel."""
    alone = group.split(group.rank)
    lines = ["| kept for the backward pass | bytes per rank | of one process |", "|---|---:|---:|"]
    one = _kept(ParallelBlock(FEATURES, HEADS, alone), _input())
    rows = {
        "one process": one,
        f"tensor parallel, {group.size} ranks": _kept(ParallelBlock(FEATURES, HEADS, group), _input()),
        f"with sequence parallel, {group.size} ranks": _kept(
            ParallelBlock(FEATURES, HEADS, group, sequence_parallel=True), Split(group, 1, LENGTH).cut(_input())
        ),
    }
    lines += [f"| {what} | {kept:,} | {kept / one:.2f} |" for what, kept in rows.items()]
    return "\n".join(lines)


def _kept(module: nn.Module, x: Tensor) -> int:
    """Return the bytes of all tensors except parameters that a forward pass keeps for the backward pass."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
    kept: dict[int, Tensor] = {}  # referenced until the end, so that no memory is reused

    def keep(tensor: Tensor) -> Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address not in parameters:
            kept[address] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = module(x.requires_grad_())
    assert result.requires_grad
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
