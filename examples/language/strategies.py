"""The strategies: how a model is spread over ranks. Each returns the model to call and the optimiser to step.

All of them train the same model on the same batches and come to the same loss (but for ``moe``, which is another
model). What differs is what each rank holds, and what the ranks send each other: ``--collectives`` lists it.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from language.experts import MixtureGPT
from language.model import GPT, Shape
from unisono.codecs import ErrorFeedback
from unisono.parallel import DataParallel, Group, ParallelTransformer, Zero, is_expert, mesh

Made = tuple[nn.Module, Any]


def ddp(shape: Shape, group: Group, asked: Namespace) -> Made:
    """Data parallel: every rank has the whole model and some of the rows; gradients are averaged."""
    model = DataParallel(GPT(shape), group, **wire(asked))
    return model, asked.optimizer(model.parameters())


def tp(shape: Shape, group: Group, asked: Namespace) -> Made:
    """Tensor parallel: ``--tp`` ranks have a part of every matrix, and the same rows. More ranks: data × tensor."""
    ranks = mesh(group, dp=-1, tp=asked.tp)
    model = split_model(shape, ranks.tp)
    if ranks.dp.size > 1:
        model = DataParallel(model, ranks.dp, **wire(asked))
    return model, asked.optimizer(model.parameters())


def zero(shape: Shape, group: Group, asked: Namespace, stage: int) -> Made:
    """ZeRO: data parallel, but each rank keeps a shard of the optimiser (1), gradients (2) and parameters (3)."""
    ranks = mesh(group, dp=-1, tp=asked.tp)
    model = Zero(split_model(shape, ranks.tp), ranks.dp, optimizer=asked.optimizer, stage=stage, **wire(asked))
    return model, model.optimizer


def hybrid(shape: Shape, group: Group, asked: Namespace) -> Made:
    """Hybrid: stage 3 of ZeRO within each of ``--nodes`` groups of ranks; between them, shards are averaged."""
    ranks = mesh(group, nodes=asked.nodes, dp=-1, tp=asked.tp)
    model = split_model(shape, ranks.tp)
    model = Zero(model, ranks.dp, replicate=ranks.nodes, optimizer=asked.optimizer, stage=3, **wire(asked))
    return model, model.optimizer


def moe(shape: Shape, group: Group, asked: Namespace) -> Made:
    """Mixture of experts: each rank has other experts, to which all ranks send rows. The rest is data parallel."""
    model = DataParallel(MixtureGPT(shape, group), group, local=is_expert, **wire(asked))
    return model, asked.optimizer(model.parameters())


def split_model(shape: Shape, group: Group) -> nn.Module:
    """Return the model, split over the ranks of a group if there are several."""
    if group.size == 1:
        return GPT(shape)
    return ParallelTransformer(shape.characters, shape.features, shape.heads, shape.layers, shape.longest, group)


def wire(asked: Namespace) -> dict[str, Any]:
    """Return how gradients travel."""
    return {"codec": asked.codec, "error_feedback": ErrorFeedback if asked.error_feedback else None}


STRATEGIES: dict[str, Callable[[Shape, Group, Namespace], Made]] = {
    "ddp": ddp, "tp": tp, "zero1": partial(zero, stage=1), "zero2": partial(zero, stage=2),
    "zero3": partial(zero, stage=3), "hybrid": hybrid, "moe": moe,
}  # fmt: skip
