"""The strategies, which distribute a model over ranks. Each returns the model and its optimiser.

All strategies train the same model on the same batches and reach the same loss, except ``moe``, which is a different
model. They differ in what each rank holds and in what the ranks send: ``--collectives`` lists it.
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


def ddp(shape: Shape, group: Group, options: Namespace) -> Made:
    """Data parallel: every rank holds the whole model and reads some of the rows; gradients are averaged."""
    model = DataParallel(GPT(shape).to(options.device), group, **codec_options(options))
    return model, options.optimizer(model.parameters())


def tp(shape: Shape, group: Group, options: Namespace) -> Made:
    """Tensor parallel: ``--tp`` ranks share every matrix and read the same rows. More ranks: data × tensor."""
    ranks = mesh(group, dp=-1, tp=options.tp)
    model = split_model(shape, ranks.tp).to(options.device)
    if ranks.dp.size > 1:
        model = DataParallel(model, ranks.dp, **codec_options(options))
    return model, options.optimizer(model.parameters())


def zero(shape: Shape, group: Group, options: Namespace, stage: int) -> Made:
    """ZeRO: data parallel, but each rank keeps a shard of the optimiser (1), gradients (2) and parameters (3)."""
    ranks = mesh(group, dp=-1, tp=options.tp)
    model = split_model(shape, ranks.tp).to(options.device)
    model = Zero(model, ranks.dp, optimizer=options.optimizer, stage=stage, **codec_options(options))
    return model, model.optimizer


def hybrid(shape: Shape, group: Group, options: Namespace) -> Made:
    """Hybrid: stage 3 of ZeRO within each of ``--nodes`` groups of ranks; between them, shards are averaged."""
    ranks = mesh(group, nodes=options.nodes, dp=-1, tp=options.tp)
    model = split_model(shape, ranks.tp).to(options.device)
    model = Zero(
        model, ranks.dp, replicate=ranks.nodes, optimizer=options.optimizer, stage=3, **codec_options(options)
    )
    return model, model.optimizer


def moe(shape: Shape, group: Group, options: Namespace) -> Made:
    """Mixture of experts: each rank holds some experts, to which all ranks send rows. The rest is data parallel."""
    model = MixtureGPT(shape, group).to(options.device)
    model = DataParallel(model, group, local=is_expert, **codec_options(options))
    return model, options.optimizer(model.parameters())


def split_model(shape: Shape, group: Group) -> nn.Module:
    """Return the model, split over the ranks of a group if there are several."""
    if group.size == 1:
        return GPT(shape)
    return ParallelTransformer(shape.characters, shape.features, shape.heads, shape.layers, shape.longest, group)


def codec_options(options: Namespace) -> dict[str, Any]:
    """Return the options for the codec of the gradients."""
    return {"codec": options.codec, "error_feedback": ErrorFeedback if options.error_feedback else None}


STRATEGIES: dict[str, Callable[[Shape, Group, Namespace], Made]] = {
    "ddp": ddp, "tp": tp, "zero1": partial(zero, stage=1), "zero2": partial(zero, stage=2),
    "zero3": partial(zero, stage=3), "hybrid": hybrid, "moe": moe,
}  # fmt: skip
