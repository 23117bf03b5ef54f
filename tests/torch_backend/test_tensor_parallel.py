"""Tensor-parallel layers of DTensor match one process, with and without FSDP."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from torch_ranks import assert_close, run_ranks, same_as_gloo

SIZES = [2, pytest.param(4, marks=pytest.mark.long)]
WIDTH = 8
SEQUENCE = 8


class Block(nn.Module):
    """A transformer block without attention."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, inputs):
        return self.down(torch.relu(self.up(self.norm(inputs))))


# Replicated inputs are split along the sequence.
SPREAD = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(1))
PLANS = {
    "columns and rows": {"up": ColwiseParallel(), "down": RowwiseParallel()},
    "sequence": {
        "": SPREAD,
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Replicate()),
    },
    "sequence to the end": {
        "": SPREAD,
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    },
}


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def inputs_of(number):
    return torch.randn(3, SEQUENCE, WIDTH, generator=torch.Generator().manual_seed(number))


def train_in_parallel(plan):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = parallelize_module(Block(), mesh, PLANS[plan])
    return train_block(model, 0, lambda step: [inputs_of(step)])


def train_block(model, rank, batches_of):
    """Train; return the full outputs and parameters."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    outputs = []
    for step in range(3):
        optimizer.zero_grad()
        batches = batches_of(step)
        for inputs in batches:
            output = whole(model(inputs))
            (output.square().sum() / len(batches)).backward()
        optimizer.step()
        outputs.append(output.detach())
    return outputs[-1], {name: whole(value).detach() for name, value in model.named_parameters()}


def train_alone():
    return train_block(Block(), 0, lambda step: [inputs_of(step)])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("plan", PLANS)
def test_a_parallel_block_trains_like_on_gloo_and_like_one_process(plan, size):
    ours = same_as_gloo(train_in_parallel, size, plan, bits=16)
    [alone] = run_ranks(train_alone, 1)
    for rank in range(size):
        assert_close(ours[rank], alone, 16, f"rank {rank}: differs from one process")


def train_on_a_grid():
    """Train with tensor parallelism along one dimension of the mesh and FSDP along the other."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    model = parallelize_module(Block(), mesh["tensor"], PLANS["columns and rows"])
    for part in (model.norm, model.up, model.down, model):
        fully_shard(part, mesh=mesh["data"])
    mine = mesh["data"].get_local_rank()
    return train_block(model, mine, lambda step: [inputs_of(10 * step + mine)])


def train_grid_alone():
    return train_block(Block(), 0, lambda step: [inputs_of(10 * step + data) for data in range(2)])


def test_fsdp_and_tensor_parallel_can_share_a_mesh_of_four_ranks():
    ours = same_as_gloo(train_on_a_grid, 4, bits=16)
    [(_, alone)] = run_ranks(train_grid_alone, 1)
    for rank, (_, parameters) in enumerate(ours):
        assert_close(parameters, alone, 14, f"rank {rank}: differs from one process")


def redistribute():
    """Redistribute a tensor from every placement to every other."""
    size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    tensor = torch.arange(2 * size * 3 * size, dtype=torch.float32).reshape(2 * size, 3 * size)
    uneven = torch.arange(35.0).reshape(5, 7)
    found = []
    for given in (tensor, uneven):
        for before in (Replicate(), Shard(0), Shard(1)):
            for after in (Replicate(), Shard(0), Shard(1)):
                moved = distribute_tensor(given, mesh, [before]).redistribute(mesh, [after])
                assert torch.equal(moved.full_tensor(), given), (before, after)
                found.append(moved.to_local().clone())
        parts = DTensor.from_local(given * (dist.get_rank() + 1), mesh, [Partial()])
        for after in (Replicate(), Shard(0)):
            found.append(parts.redistribute(mesh, [after]).to_local().clone())
    return found


@pytest.mark.parametrize("size", SIZES)
def test_tensors_can_be_redistributed_between_all_placements(size):
    same_as_gloo(redistribute, size)


def mesh_of_two_dimensions():
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("rows", "columns"))
    sums = []
    for name in ("rows", "columns"):
        value = torch.tensor([float(10 ** dist.get_rank())])
        dist.all_reduce(value, group=mesh.get_group(name))
        sums.append(value.item())
    flat = mesh["rows", "columns"]._flatten("all")
    value = torch.tensor([float(10 ** dist.get_rank())])
    dist.all_reduce(value, group=flat.get_group())
    return [*sums, value.item()]


def test_a_mesh_has_a_group_for_every_row_and_column():
    found = run_ranks(mesh_of_two_dimensions, 4)
    assert found == [[101, 11, 1111], [1010, 11, 1111], [101, 1100, 1111], [1010, 1100, 1111]]
