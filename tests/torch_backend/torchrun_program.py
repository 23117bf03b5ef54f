"""A program for torchrun: it trains in several ways on the backend unisono, and compares each with one process.

Rank 0 writes the differences, the hosts of the groups and what was left open to the file that the first argument
names; the second argument names a folder for a checkpoint.
"""

from __future__ import annotations

import json
import os
import sys
import time
from copy import deepcopy
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

from unisono.parallel import Zero, group_of

STEPS, FEATURES, ROWS = 5, 8, 6
MICRO_BATCHES = 6


def small_model(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))


def batch(rank, step):
    source = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(ROWS, FEATURES, generator=source), torch.randn(ROWS, 4, generator=source)


def adam(parameters):
    return torch.optim.Adam(parameters, 0.01)


def train(model, optimizer, ranks, size):
    """Train with the batches of some ranks; return the losses, averaged over ``size`` ranks."""
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = torch.zeros(1)
        for rank in ranks:
            inputs, targets = batch(rank, step)
            loss = mse_loss(model(inputs), targets)
            (loss / len(ranks)).backward()
            total += loss.detach()
        optimizer.step()
        if len(ranks) < size:
            dist.all_reduce(total)
        losses.append(total.item() / size)
    return losses


def difference(losses, expected):
    return max(abs(loss - other) for loss, other in zip(losses, expected, strict=True))


def sharded(mesh, seed=1):
    model = small_model(seed)
    for layer in model[::2]:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train_tensor_parallel(mesh):
    """Train a model whose layers are split between all ranks: all of them have the same batch."""
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(small_model(), mesh, plan)
    optimizer = adam(model.parameters())
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs, targets = batch(0, step)
        loss = mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def checkpoint(mesh, folder):
    """Save a sharded model, load it into another, and return the largest difference of a parameter."""
    model, other = sharded(mesh), sharded(mesh, seed=2)
    first, second = adam(model.parameters()), adam(other.parameters())
    for each, optimizer in ((model, first), (other, second)):
        train(each, optimizer, [dist.get_rank()], dist.get_world_size())
    parameters, moments = get_state_dict(model, first)
    dcp.save({"model": parameters, "optimizer": moments}, checkpoint_id=folder)
    parameters, moments = get_state_dict(other, second)
    state = {"model": parameters, "optimizer": moments}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(other, second, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return max((one.full_tensor() - two.full_tensor()).abs().max().item() for one, two in pairs)


def train_pipeline(rank, size):
    """Train a model of which every rank has one layer; return the largest difference from one process."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh()) for _ in range(size)]
    alone = deepcopy(layers)
    inputs, targets = torch.randn(2 * MICRO_BATCHES, FEATURES), torch.randn(2 * MICRO_BATCHES, FEATURES)
    stage = PipelineStage(layers[rank], rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=MICRO_BATCHES, loss_fn=mse_loss)
    optimizer = torch.optim.SGD(layers[rank].parameters(), 0.1)
    optimizer_alone = torch.optim.SGD(nn.ModuleList(alone).parameters(), 0.1)
    found, expected = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        parts = []
        is_last = rank == size - 1
        schedule.step(
            *([inputs] if rank == 0 else []), target=targets if is_last else None, losses=parts if is_last else None
        )
        optimizer.step()
        optimizer_alone.zero_grad()
        loss = mse_loss(nn.Sequential(*alone)(inputs), targets)
        loss.backward()
        optimizer_alone.step()
        if is_last:
            found.append(torch.stack(parts).mean().item())
            expected.append(loss.item())
    return max(difference(found, expected) if found else 0.0, *compared(layers[rank], alone[rank]))


def compared(model, other):
    """Return the largest difference of each parameter of two models."""
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return [(one - two).abs().max().item() for one, two in pairs]


def ring_of_messages(rank, size):
    received = torch.zeros(1000)
    request = dist.irecv(received, (rank - 1) % size)
    dist.send(torch.full((1000,), float(rank)), (rank + 1) % size)
    request.wait()
    return bool((received == (rank - 1) % size).all())


def check(folder):
    rank, size = dist.get_rank(), dist.get_world_size()
    alone = small_model()
    expected = train(alone, adam(alone.parameters()), range(size), size)
    model = DistributedDataParallel(small_model())
    found = {"DDP": difference(train(model, adam(model.parameters()), [rank], size), expected)}
    model = small_model()
    apart = difference(train(model, adam(model.parameters()), [rank], size), expected)  # without averaged gradients
    mesh = init_device_mesh("cpu", (size,))
    model = sharded(mesh)
    found["FSDP2"] = difference(train(model, adam(model.parameters()), [rank], size), expected)
    hosts = dist.group.WORLD.communicator.hosts
    grid = init_device_mesh("cpu", (len(hosts), size // len(hosts)), mesh_dim_names=("replicate", "shard"))
    model = sharded(grid)
    found["FSDP2, hybrid"] = difference(train(model, adam(model.parameters()), [rank], size), expected)
    zero = Zero(small_model(), group_of(None), optimizer=adam, replicate="hosts")
    found["Zero, hybrid"] = difference(train(zero, zero, [rank], size), expected)
    model = small_model()
    one_batch = train(model, adam(model.parameters()), [0], 1)
    found["tensor parallel"] = difference(train_tensor_parallel(mesh), one_batch)
    found["pipeline"] = train_pipeline(rank, size)
    found["checkpoint"] = checkpoint(mesh, folder)
    facts = {"hosts": hosts, "messages": ring_of_messages(rank, size), "differences": found, "apart": apart}
    facts["shards"] = [len(zero.group.hosts), zero.group.size]
    facts["near"] = grid["shard"].get_group().communicator.hosts
    facts["far"] = grid["replicate"].get_group().communicator.hosts
    return facts


def listening():
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    own = {os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.exists()}
    return sum(row[3] == "0A" and f"socket:[{row[9]}]" in own for row in rows)


def main():
    torch.set_num_threads(1)
    before = listening()
    began_s = time.monotonic()
    dist.init_process_group("unisono")
    seconds = time.monotonic() - began_s
    facts = check(sys.argv[2])
    rank = dist.get_rank()
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, facts["differences"])
    facts["differences"] = {name: max(each[name] for each in every) for name in every[0]}
    facts["init_s"], facts["used"] = seconds, listening() - before
    dist.destroy_process_group()
    facts["left"] = listening() - before
    if rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
