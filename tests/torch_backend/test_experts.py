"""A layer of experts sends different numbers of rows to the ranks of their experts and back, and so do gradients."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as with_gradients
from torch import nn

from torch_ranks import assert_close, run_ranks, same_as_gloo

SIZES = [2, pytest.param(4, marks=pytest.mark.long)]
WIDTH = 6


def experts_of(size):
    torch.manual_seed(0)
    return [nn.Linear(WIDTH, WIDTH) for _ in range(size)]


def rows_of(rank):
    source = torch.Generator().manual_seed(rank)
    return torch.randn(5 + 3 * rank, WIDTH, generator=source)


def expert_for(rows, size):
    return torch.arange(len(rows)) * 5 // 3 % size  # a different number for every expert


def exchange_by_nn(rows, sent, received):
    out = rows.new_empty(sum(received), WIDTH)
    return with_gradients.all_to_all_single(out, rows, received, sent)


def exchange_by_functional(rows, sent, received):
    return functional.all_to_all_single_autograd(rows, received, sent, dist.group.WORLD)


EXCHANGES = {"torch.distributed.nn": exchange_by_nn, "functional collectives": exchange_by_functional}


def train_experts(exchange):
    rank, size = dist.get_rank(), dist.get_world_size()
    exchange = EXCHANGES[exchange]
    rows = rows_of(rank).requires_grad_()
    expert = experts_of(size)[rank]
    chosen = expert_for(rows, size)
    order = torch.argsort(chosen, stable=True)
    sent = torch.bincount(chosen, minlength=size)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    there = exchange(rows[order], sent.tolist(), received.tolist())
    back = exchange(torch.tanh(expert(there)), received.tolist(), sent.tolist())
    out = torch.zeros_like(rows).index_copy(0, order, back)
    out.square().sum().backward()
    return out.detach(), rows.grad, [parameter.grad for parameter in expert.parameters()]


def train_experts_alone(size):
    experts = experts_of(size)
    found = []
    for rank in range(size):
        rows = rows_of(rank).requires_grad_()
        chosen = expert_for(rows, size)
        out = torch.stack([torch.tanh(experts[which](row)) for row, which in zip(rows, chosen, strict=True)])
        out.square().sum().backward()
        found.append((out.detach(), rows.grad))
    return [
        (*mine, [parameter.grad for parameter in expert.parameters()])
        for mine, expert in zip(found, experts, strict=True)
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_experts_on_several_ranks_match_experts_in_one_process(exchange, size):
    ours = same_as_gloo(train_experts, size, exchange)
    [alone] = run_ranks(train_experts_alone, 1, size)
    assert_close(ours, alone, 18, "differs from one process")
