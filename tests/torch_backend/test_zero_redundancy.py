"""ZeroRedundancyOptimizer, where every rank keeps the state of its share of the parameters, trains correctly."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from training import parameters_of, small_model, train

from torch_ranks import assert_close, run_ranks, same_as_gloo

SIZES = [2, pytest.param(4, marks=pytest.mark.long)]
WARM_UP = 2


def train_both_ways(as_bucket_view):
    """Train with the sharded optimizer, and with a whole one."""
    found = []
    for optimizer_of in (
        lambda model: ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.Adam, lr=0.01, parameters_as_bucket_view=as_bucket_view
        ),
        lambda model: torch.optim.Adam(model.parameters(), lr=0.01),
    ):
        model = DistributedDataParallel(small_model())
        train(model, optimizer_of(model), dist.get_rank())
        found.append(parameters_of(model))
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("as_bucket_view", [False, True])
def test_a_sharded_optimizer_matches_a_whole_one(size, as_bucket_view):
    for shared, whole in same_as_gloo(train_both_ways, size, as_bucket_view, bits=16):
        assert_close(shared, whole, 16, "differs from the whole optimizer")


def consolidate():
    model = DistributedDataParallel(small_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    train(model, optimizer, dist.get_rank())
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() != 0:
        return []
    return [entry["exp_avg"] for entry in optimizer.state_dict()["state"].values()]


@pytest.mark.parametrize("size", SIZES)
def test_rank_0_collects_the_state_of_all_ranks(size):
    ours = same_as_gloo(consolidate, size, bits=16)
    assert len(ours[0]) == len(list(small_model().parameters()))


def overlap():
    """Train with optimizer steps in DDP's callbacks, and without."""
    model = DistributedDataParallel(small_model(), gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.05)
    model.register_comm_hook(None, hook_with_zero_step(allreduce_hook, model, optimizer))
    overlapped = train(model, optimizer, dist.get_rank(), 6)
    plain = DistributedDataParallel(small_model())
    # With overlap, torch does not update parameters in the first steps, in which it records the order of buckets.
    unmoved = train(plain, torch.optim.SGD(plain.parameters(), lr=0), dist.get_rank(), WARM_UP)
    moved = train(plain, torch.optim.SGD(plain.parameters(), lr=0.05), dist.get_rank(), 6 - WARM_UP, first=WARM_UP)
    return overlapped, torch.cat([unmoved, moved])


@pytest.mark.parametrize("size", SIZES)
def test_optimizer_steps_can_overlap_with_the_communication_of_ddp(size):
    """The test does not compare with Gloo: torch does not allow this there, because it may hang."""
    for overlapped, expected in run_ranks(overlap, size):
        assert_close(overlapped, expected, 18, "differs from training without overlap")
