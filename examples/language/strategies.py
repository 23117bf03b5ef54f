"""The strategies: how a model is spread over ranks. Each function returns the model to call and the optimiser to step.

All of them train the same model on the same batches, and come to the same loss. What differs is what each rank holds,
and what the ranks send each other: ``--collectives`` lists it.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from language.experts import MixtureGPT
from language.model import GPT, Shape
from torch import nn
from torch.optim import AdamW

from unisono.parallel import DataParallel, Group, ParallelTransformer, Zero, is_expert, mesh

Made = tuple[nn.Module, Any]


def ddp(shape: Shape, group: Group, asked: Namespace) -> Made:
    """Data parallel: every rank has the whole model and some of the rows; gradients are averaged on the way."""
    model = DataParallel(GPT(shape), group, codec=asked.codec)
    return model, AdamW(model.parameters(), asked.rate)


def tp(shape: Shape, group: Group, asked: Namespace) -> Made:
    """Tensor parallel: ``--tp`` ranks have a part of every matrix, and the same rows. With more ranks: data × tensor."""
    ranks = mesh(group, dp=-1, tp=asked.tp)
    model = split_model(shape, ranks.tp)
    if ranks.dp.size > 1:
        model = DataParallel(model, ranks.dp, codec=asked.codec)
    return model, AdamW(model.parameters(), asked.rate)


def zero(shape: Shape, group: Group, asked: Namespace, stage: int) -> Made:
    """ZeRO: data parallel, but each rank keeps a shard of optimiser (1), gradients (2) and parameters (3)."""
    ranks = mesh(group, dp=-1, tp=asked.tp)
    model = Zero(
        split_model(shape, ranks.tp), ranks.dp, stage=stage, codec=asked.codec,
        optimizer=lambda shards: AdamW(shards, asked.rate),
    )  # fmt: skip
    return model, model.optimizer


def hybrid(shape: Shape, group: Group, asked: Namespace) -> Made:
    """Hybrid: ZeRO stage 3 within each of ``--nodes`` groups of ranks; between them, shards are averaged."""
    ranks = mesh(group, nodes=asked.nodes, dp=-1, tp=asked.tp)
    model = Zero(
        split_model(shape, ranks.tp), ranks.dp, stage=3, replicate=ranks.nodes, codec=asked.codec,
        optimizer=lambda shards: AdamW(shards, asked.rate),
    )  # fmt: skip
    return model, model.optimizer


def moe(shape: Shape, group: Group, asked: Namespace) -> Made:
    """Mixture of experts: every rank has other experts, to which all ranks send rows. The rest is data parallel."""
    model = DataParallel(MixtureGPT(shape, group), group, skip=is_expert, codec=asked.codec)
    return model, AdamW(model.parameters(), asked.rate)


def split_model(shape: Shape, group: Group) -> nn.Module:
    """Return the model, split over the ranks of a group if there are several."""
    if group.size == 1:
        return GPT(shape)
    return ParallelTransformer(shape.characters, shape.features, shape.heads, shape.layers, shape.longest, group)


STRATEGIES: dict[str, Callable[[Shape, Group, Namespace], Made]] = {
    "ddp": ddp,
    "tp": tp,
    "zero1": lambda shape, group, asked: zero(shape, group, asked, stage=1),
    "zero2": lambda shape, group, asked: zero(shape, group, asked, stage=2),
    "zero3": lambda shape, group, asked: zero(shape, group, asked, stage=3),
    "hybrid": hybrid,
    "moe": moe,
}
