"""ZeroRedundancyOptimizer: every rank keeps the state of its share of the parameters."""

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

SIZES = [2, 4]
WARM_UP = 2


def train_both_ways(as_bucket_view):
    """Train with the optimizer in shares, and in one piece."""
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
def test_shares_of_an_optimizer_do_what_the_whole_does(size, as_bucket_view):
    for shared, whole in same_as_gloo(train_both_ways, size, as_bucket_view, bits=16):
        assert_close(shared, whole, 16, "not as the optimizer in one piece")


def consolidate():
    model = DistributedDataParallel(small_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    train(model, optimizer, dist.get_rank())
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() != 0:
        return []
    return [entry["exp_avg"] for entry in optimizer.state_dict()["state"].values()]


@pytest.mark.parametrize("size", SIZES)
def test_rank_0_collects_the_state_of_all(size):
    ours = same_as_gloo(consolidate, size, bits=16)
    assert len(ours[0]) == len(list(small_model().parameters()))


def overlap():
    """Train with the optimizer's steps in DDP's callbacks, and train as usual."""
    model = DistributedDataParallel(small_model(), gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.05)
    model.register_comm_hook(None, hook_with_zero_step(allreduce_hook, model, optimizer))
    overlapped = train(model, optimizer, dist.get_rank(), 6)
    plain = DistributedDataParallel(small_model())
    # With overlap, torch does not move the parameters in the first steps: it looks which bucket comes when.
    unmoved = train(plain, torch.optim.SGD(plain.parameters(), lr=0), dist.get_rank(), WARM_UP)
    moved = train(plain, torch.optim.SGD(plain.parameters(), lr=0.05), dist.get_rank(), 6 - WARM_UP, first=WARM_UP)
    return overlapped, torch.cat([unmoved, moved])


@pytest.mark.parametrize("size", SIZES)
def test_the_optimizer_runs_while_ddp_still_communicates(size):
    """Not compared with Gloo: torch does not allow this with it, as it may hang."""
    for overlapped, expected in run_ranks(overlap, size):
        assert_close(overlapped, expected, 18, "not as without overlap")
