"""Checkpoints of torch.distributed.checkpoint can be saved by some ranks and loaded by any number of ranks."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from training import small_model, train

from torch_ranks import run_ranks


def sharded_and_trained(seed, steps):
    model = small_model(seed)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model[::2]:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    train(model, optimizer, rank=0, steps=steps)  # rank=0: the same data for any world size
    return model, optimizer


def in_one_piece(model, optimizer):
    moments = [optimizer.state[parameter]["exp_avg"].full_tensor() for parameter in model.parameters()]
    return [parameter.full_tensor().detach() for parameter in model.parameters()], moments


def save(folder, in_background):
    model, optimizer = sharded_and_trained(seed=1, steps=3)
    parameters, moments = get_state_dict(model, optimizer)
    state = {"model": parameters, "optimizer": moments}
    expected = in_one_piece(model, optimizer)
    if in_background:
        # A separate group: the calls of two threads on one group would have no common order on all ranks.
        saving = dcp.async_save(state, checkpoint_id=folder, process_group=dist.new_group())
        train(model, optimizer, rank=0, steps=1)  # must not change the saved state
        saving.result()
    else:
        dcp.save(state, checkpoint_id=folder)
    return expected


def load(folder):
    model, optimizer = sharded_and_trained(seed=2, steps=1)
    parameters, moments = get_state_dict(model, optimizer)
    state = {"model": parameters, "optimizer": moments}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return in_one_piece(model, optimizer)


def assert_saved_is_loaded(folder, saved_by, loaded_by, in_background):
    expected = run_ranks(save, saved_by, folder, in_background)[0]
    for found in run_ranks(load, loaded_by, folder):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("saved_by", "loaded_by"),
    [(2, 2), (3, 2), (2, 1), *(pytest.param(*case, marks=pytest.mark.long) for case in ((4, 4), (4, 2), (2, 4)))],
)
def test_a_checkpoint_can_be_loaded_by_any_number_of_ranks(tmp_path, saved_by, loaded_by):
    assert_saved_is_loaded(str(tmp_path / "checkpoint"), saved_by, loaded_by, in_background=False)


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.long)])
def test_a_checkpoint_can_be_saved_asynchronously(tmp_path, size):
    assert_saved_is_loaded(str(tmp_path / "checkpoint"), size, 2, in_background=True)
