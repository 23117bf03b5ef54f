"""Which rows go to which expert: numbers only, no communication.

::

    probabilities = softmax(router(x))        of every expert, for every row
    choices       = the k largest of them     first choice, second choice, ...
    weights       = these, divided by their sum (for k > 1)

An expert has room for ``capacity`` rows of the whole batch: of the rows of all ranks. It takes first choices
before second ones, and among them the rows of rank 0 before those of rank 1: as one process would that has
all rows. What finds no room is dropped. Every rank knows how many rows every rank would like to send
(``expert_counts``), so all decide alike, without a word more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class ExpertAssignment:
    """What this rank sends, in the order of experts, and how many rows everybody sends."""

    rows: Tensor  # number of the row, of every row that is sent
    choices: Tensor  # which of the row's choices it was
    sent: Tensor  # (experts, ranks): rows that each expert gets from each rank; on the CPU, where it is read
    load: Tensor  # (experts,): rows that would like to go to each expert, of all ranks
    total: int  # rows of the batch, of all ranks


def choose(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the probabilities (rows, experts), and experts and weights (rows, k) of the choices."""
    probabilities = torch.softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    weights, experts = probabilities.topk(top_k, dim=-1)
    if top_k > 1:  # a single weight would be one, whatever the router says, and the router would learn nothing
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return probabilities, experts, weights


def expert_counts(experts: Tensor, count: int) -> Tensor:
    """Return how many rows would like to go to which expert (of ``count``), by choice: (experts, k)."""
    k = experts.shape[1]
    return torch.bincount(_slots(experts).flatten(), minlength=count * k).view(count, k)


def assign_experts(experts: Tensor, all_counts: Tensor, rank: int, capacity_factor: float | None) -> ExpertAssignment:
    """Decide which rows this rank sends, from its choices and the counts of all ranks (ranks, experts, k)."""
    _, count, k = all_counts.shape
    load = all_counts.sum(dim=(0, 2))
    total = int(load.sum()) // k
    capacity = total if capacity_factor is None else math.ceil(capacity_factor * k * total / count)

    # How many are before the first of a rank's rows, in the queue of an expert: (experts, k, ranks).
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
    """Return E * sum over experts of f * P: 1 where all are used alike, up to E where one is used alone.

    f is the share of all choices that an expert got, P its mean probability over ``total`` rows, of which
    ``probabilities`` may be some: over ranks, the losses add up to that of all rows. Only P has a gradient.
    """
    share = load.to(probabilities.dtype) / max(1, k * total)
    return len(load) * (share * probabilities.sum(dim=0)).sum() / max(1, total)


def _slots(experts: Tensor) -> Tensor:
    """Number every pair of an expert and a choice: the experts one after the other, first choices first."""
    k = experts.shape[1]
    return experts * k + torch.arange(k, device=experts.device)
