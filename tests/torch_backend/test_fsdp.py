"""FSDP2 (fully_shard) and FSDP1 train like on Gloo."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.nn.functional import mse_loss
from training import batch, parameters_of, small_model, train

from torch_ranks import assert_close, run_ranks, same_as_gloo

SIZES = [2, pytest.param(4, marks=pytest.mark.long)]
BF16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
BF16_SUMMED_IN_FP32 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)

# name: the arguments of fully_shard, and the number of bits of a result to compare
VARIANTS = {
    "fp32": ({}, 18),
    "bf16": ({"mp_policy": BF16}, 9),
    "bf16 summed in fp32": ({"mp_policy": BF16_SUMMED_IN_FP32}, 12),
    "reshard_after_forward=False": ({"reshard_after_forward": False}, 18),
    "reshard_after_forward=2": ({"reshard_after_forward": 2}, 18),
}


def sharded(mesh, **options):
    model = small_model()
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def whole(model):
    """Return the full state dict on every rank."""
    return dict(get_model_state_dict(model, options=StateDictOptions(full_state_dict=True)))


def train_sharded(variant):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = sharded(mesh, **VARIANTS[variant][0])
    losses = train(model, torch.optim.Adam(model.parameters(), 0.01), dist.get_rank())
    return losses, whole(model)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_sharded_model_trains_like_on_gloo(variant, size):
    same_as_gloo(train_sharded, size, variant, bits=VARIANTS[variant][1])


def train_alone(size):
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(4):
        optimizer.zero_grad()
        for rank in range(size):
            inputs, targets = batch(rank, step)
            (mse_loss(model(inputs), targets) / size).backward()
        optimizer.step()
    return dict(model.state_dict())


@pytest.mark.parametrize("size", SIZES)
def test_a_sharded_model_trains_like_one_process_with_all_data(size):
    ours = run_ranks(train_sharded, size, "fp32")
    [single] = run_ranks(train_alone, 1, size)
    for _, state in ours:
        assert_close(state, single, 14, "differs from one process")


def train_hybrid():
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("replicate", "shard"))
    model = sharded(mesh)
    losses = train(model, torch.optim.SGD(model.parameters(), 0.1), dist.get_rank())
    return losses, whole(model)


@pytest.mark.parametrize("size", SIZES)
def test_hybrid_sharding_works_on_a_mesh_of_two_dimensions(size):
    same_as_gloo(train_hybrid, size)


def state_there_and_back():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = sharded(mesh)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=options)
    doubled = {name: 2 * value for name, value in state.items()}
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, doubled, options=options)
    return [parameter.full_tensor() for parameter in model.parameters()], [p * 2 for p in small_model().parameters()]


@pytest.mark.parametrize("size", SIZES)
def test_a_full_state_dict_can_be_read_and_loaded(size):
    for found, expected in run_ranks(state_there_and_back, size):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def accumulate_sharded():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = sharded(mesh)
    for step in range(3):
        model.set_requires_gradient_sync(step == 2)
        inputs, targets = batch(dist.get_rank(), step)
        mse_loss(model(inputs), targets).backward()
    return [parameter.grad.full_tensor() for parameter in model.parameters()]


@pytest.mark.parametrize("size", SIZES)
def test_gradients_accumulate_without_communication(size):
    same_as_gloo(accumulate_sharded, size)


def train_fsdp1(use_orig_params):
    model = FullyShardedDataParallel(small_model(), device_id=torch.device("cpu"), use_orig_params=use_orig_params)
    losses = train(model, torch.optim.SGD(model.parameters(), 0.1), dist.get_rank())
    with FullyShardedDataParallel.summon_full_params(model):
        return losses, parameters_of(model)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("use_orig_params", [False, True])
def test_fsdp1_trains_like_on_gloo(use_orig_params, size):
    same_as_gloo(train_fsdp1, size, use_orig_params)
