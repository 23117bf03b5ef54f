"""DistributedDataParallel trains like on Gloo in all its variants."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from training import batch, parameters_of, small_model, train

from torch_ranks import run_ranks, same_as_gloo

SIZES = [2, pytest.param(4, marks=pytest.mark.long)]


def plain(**options):
    # A different model on every rank: DDP must broadcast that of rank 0.
    model = DistributedDataParallel(small_model(seed=dist.get_rank()), **options)
    losses = train(model, torch.optim.SGD(model.parameters(), 0.1), dist.get_rank())
    return losses, parameters_of(model)


VARIANTS = {
    "plain": {},
    "many buckets": {"bucket_cap_mb": 0.0005},
    "find_unused_parameters": {"find_unused_parameters": True},
    "static_graph": {"static_graph": True},
    "gradient_as_bucket_view": {"gradient_as_bucket_view": True},
}


def train_with(variant):
    return plain(**VARIANTS[variant])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_model_trains_like_on_gloo(variant, size):
    ours = same_as_gloo(train_with, size, variant)
    for _, parameters in ours[1:]:
        torch.testing.assert_close(parameters, ours[0][1], rtol=0, atol=0)  # the same bits on every rank


def alone(size):
    model = small_model(seed=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(4):
        optimizer.zero_grad()
        for rank in range(size):
            inputs, targets = batch(rank, step)
            (mse_loss(model(inputs), targets) / size).backward()
        optimizer.step()
    return parameters_of(model)


@pytest.mark.parametrize("size", SIZES)
def test_training_on_several_ranks_matches_one_process_with_all_data(size):
    together = run_ranks(train_with, size, "plain")[0][1]
    [single] = run_ranks(alone, 1, size)
    torch.testing.assert_close(together, single)


def accumulate():
    model = DistributedDataParallel(small_model())
    rank = dist.get_rank()

    def backward(step):
        inputs, targets = batch(rank, step)
        mse_loss(model(inputs), targets).backward()

    with model.no_sync():
        backward(0)
        backward(1)
    before = [parameter.grad.clone() for parameter in model.parameters()]
    backward(2)
    return before, [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("size", SIZES)
def test_no_sync_postpones_the_reduction_to_the_next_backward_pass(size):
    ours = same_as_gloo(accumulate, size)
    first, second = ours[:2]
    assert not torch.equal(first[0][0], second[0][0])
    assert torch.equal(first[1][0], second[1][0])


class Branches(nn.Module):
    """Uses the layer that ``which`` selects."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(8, 4), nn.Linear(8, 4)])

    def forward(self, inputs, which):
        return self.layers[which](inputs)


def use_one_branch():
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    inputs, targets = batch(dist.get_rank(), 0)
    gradients = []
    for step in range(3):
        model.zero_grad()
        mse_loss(model(inputs, (dist.get_rank() + step) % 2), targets).backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    return gradients


@pytest.mark.parametrize("size", SIZES)
def test_unused_parameters_may_differ_between_ranks(size):
    same_as_gloo(use_one_branch, size)


def uneven():
    model = DistributedDataParallel(small_model())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with model.join():
        losses = train(model, optimizer, dist.get_rank(), steps=2 + 2 * dist.get_rank())
    return losses, parameters_of(model)


@pytest.mark.parametrize("size", SIZES)
def test_join_allows_different_numbers_of_inputs(size):
    ours = same_as_gloo(uneven, size)
    assert [len(losses) for losses, _ in ours] == [2 + 2 * rank for rank in range(size)]
    for _, parameters in ours:
        torch.testing.assert_close(parameters, ours[0][1])


def train_embedding():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(20, 5, sparse=True), nn.Linear(5, 1))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        optimizer.zero_grad()
        words = torch.tensor([dist.get_rank(), 7, 7, step + 10])
        model(words).square().sum().backward()
        optimizer.step()
    return model.module[0].weight.grad.coalesce().indices(), parameters_of(model)


@pytest.mark.parametrize("size", SIZES)
def test_sparse_gradients_are_summed(size):
    ours = same_as_gloo(train_embedding, size)
    assert ours[0][0].tolist() == [[*range(size), 7, 12]]


class Statistics(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))

    def forward(self, inputs):
        return self.layers(inputs)


def train_with_buffers():
    model = DistributedDataParallel(Statistics())
    train(model, torch.optim.SGD(model.parameters(), 0.1), dist.get_rank())
    model(batch(0, 0)[0])  # a forward pass broadcasts the buffers of rank 0
    return [buffer.clone() for buffer in model.buffers()], parameters_of(model)


@pytest.mark.parametrize("size", SIZES)
def test_buffers_are_broadcast_from_rank_0(size):
    same_as_gloo(train_with_buffers, size)
