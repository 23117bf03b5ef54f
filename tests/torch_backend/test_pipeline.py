"""Pipelines train like one process: each rank has some layers, and send and recv carry activations and gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.pipelining import (  # noqa: E402
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)
from torch.nn.functional import mse_loss  # noqa: E402

from torch_ranks import assert_close, run_ranks, same_as_gloo  # noqa: E402

SIZES = [2, pytest.param(4, marks=pytest.mark.long)]
WIDTH = 8
BATCHES = 8  # micro-batches
SCHEDULES = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}


def layers(count):
    """Return the layers of the whole model, the same on every rank."""
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(count)]


def data():
    source = torch.Generator().manual_seed(7)
    return torch.randn(4 * BATCHES, WIDTH, generator=source), torch.randn(4 * BATCHES, WIDTH, generator=source)


def run_steps(schedule, mine, has_first, has_last):
    """Train the layers of this rank; return the losses (on the rank with the last layer) and the parameters."""
    inputs, targets = data()
    optimizer = torch.optim.SGD([parameter for layer in mine for parameter in layer.parameters()], 0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        parts = []
        schedule.step(
            *([inputs] if has_first else []), target=targets if has_last else None, losses=parts if has_last else None
        )
        optimizer.step()
        if has_last:
            losses.append(torch.stack(parts).mean().detach())
    return losses, [parameter.detach() for layer in mine for parameter in layer.parameters()]


def train_pipeline(name):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = layers(size)[rank]
    stage = PipelineStage(mine, rank, size, torch.device("cpu"))
    schedule = SCHEDULES[name](stage, n_microbatches=BATCHES, loss_fn=mse_loss)
    return run_steps(schedule, [mine], rank == 0, rank == size - 1)


def train_interleaved():
    """Train with two non-adjacent stages on every rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    every = layers(2 * size)
    mine = [every[rank], every[rank + size]]
    stages = [
        PipelineStage(layer, number, 2 * size, torch.device("cpu"))
        for layer, number in zip(mine, (rank, rank + size), strict=True)
    ]
    schedule = ScheduleInterleaved1F1B(stages, n_microbatches=BATCHES, loss_fn=mse_loss)
    return run_steps(schedule, mine, rank == 0, rank == size - 1)


def train_alone(count):
    model = nn.Sequential(*layers(count))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    inputs, targets = data()
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, [[parameter.detach() for parameter in layer.parameters()] for layer in model]


def assert_like_one_process(ours, layers_of):
    """Compare with one process; ``layers_of`` returns the layers of a rank."""
    [(losses, parameters)] = run_ranks(train_alone, 1, max(max(layers_of(rank)) for rank in range(len(ours))) + 1)
    assert_close(ours[-1][0], losses, 18, "losses differ from one process")
    for rank, (_, found) in enumerate(ours):
        expected = [parameter for number in layers_of(rank) for parameter in parameters[number]]
        assert_close(found, expected, 18, f"rank {rank}: parameters differ from one process")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_pipeline_trains_like_on_gloo_and_like_one_process(name, size):
    assert_like_one_process(same_as_gloo(train_pipeline, size, name), lambda rank: [rank])


@pytest.mark.parametrize("size", SIZES)
def test_an_interleaved_pipeline_trains_like_one_process(size):
    assert_like_one_process(same_as_gloo(train_interleaved, size), lambda rank: [rank, rank + size])
