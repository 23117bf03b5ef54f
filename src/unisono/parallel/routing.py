"""Assigns rows to experts, without communication.

::

    probabilities = softmax(router(x))        of every expert, for every row
    choices       = the k largest of them     first choice, second choice, ...
    weights       = these, divided by their sum (for k > 1)

An expert has a capacity: a maximum of rows of the whole batch, over all ranks. It accepts first choices before second
ones, and among them the rows of rank 0 before those of rank 1, as one process with all rows would. Choices beyond the
capacity are dropped. Every rank knows how many rows of every rank chose each expert (``expert_counts``), so all ranks
make the same decision without further communication.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class ExpertAssignment:
    """The rows that this rank sends, in the order of experts, and the number of rows that all ranks send."""

    rows: Tensor  # the index of every row that is sent
    choices: Tensor  # the index of the choice that each of these rows is sent for
    sent: Tensor  # (experts, ranks): rows that each expert gets from each rank; on the CPU
    load: Tensor  # (experts,): rows of all ranks that chose each expert
    total: int  # rows of the batch on all ranks


def choose(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the probabilities (rows, experts), and the experts and weights of the choices (rows, k)."""
    probabilities = torch.softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    weights, experts = probabilities.topk(top_k, dim=-1)
    if top_k > 1:  # a single weight would always be one, and the router would not learn
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return probabilities, experts, weights


def expert_counts(experts: Tensor, count: int) -> Tensor:
    """Return how many rows chose each of ``count`` experts, by choice: (experts, k)."""
    k = experts.shape[1]
    return torch.bincount(_slots(experts).flatten(), minlength=count * k).view(count, k)


def assign_experts(experts: Tensor, all_counts: Tensor, rank: int, capacity_factor: float | None) -> ExpertAssignment:
    """Decide which rows this rank sends, from its choices and the counts of all ranks (ranks, experts, k)."""
    _, count, k = all_counts.shape
    load = all_counts.sum(dim=(0, 2))
    total = int(load.sum()) // k
    capacity = total if capacity_factor is None else math.ceil(capacity_factor * k * total / count)

    # The number of rows before the first row of a rank in the queue of an expert: (experts, k, ranks).
    queue = all_counts.permute(1, 2, 0)
    ends = queue.flatten(1).cumsum(dim=1).view_as(queue)
    before = ends - queue
    sent = (capacity - before).clamp(min=0).minimum(queue).sum(dim=1)

    slots = _slots(experts).t().flatten()  # first choices of all rows, then second choices, ...
    order = slots.argsort(stable=True)
    sorted_slots = slots[order]
    own = queue[:, :, rank].flatten()
    position = torch.arange(len(order), device=order.device) - (own.cumsum(0) - own)[sorted_slots]
    kept = order[before[:, :, rank].flatten()[sorted_slots] + position < capacity]
    rows = max(1, len(experts))
    return ExpertAssignment(kept % rows, kept // rows, sent.cpu(), load, total)


def balance_loss(probabilities: Tensor, load: Tensor, total: int, k: int) -> Tensor:
    """Return E * sum over experts of f * P: 1 if all E experts are used equally, up to E if only one is used.

    f is the fraction of all choices that an expert got, P its mean probability over ``total`` rows. ``probabilities``
    may hold some of these rows: the losses of all ranks add up to the loss of all rows. Only P has a gradient.
    """
    share = load.to(probabilities.dtype) / max(1, k * total)
    return len(load) * (share * probabilities.sum(dim=0)).sum() / max(1, total)


def _slots(experts: Tensor) -> Tensor:
    """Return an index for every pair of expert and choice, sorted by expert, then by choice."""
    k = experts.shape[1]
    return experts * k + torch.arange(k, device=experts.device)
