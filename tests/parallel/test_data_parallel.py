"""DataParallel trains like one process with the whole batch, and like torch's DDP."""

from __future__ import annotations

from statistics import fmean

import pytest

torch = pytest.importorskip("torch")

from models import MODELS, batch, furthest, loss_of, make, sgd, share, train  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import DataParallel, SyncBatchNorm  # noqa: E402

STEPS = 20
# Limits of the difference after 20 steps, for parameters of about 1. The difference comes from rounding alone; in
# float32 it is a few times 2⁻²⁴ and grows slightly from step to step.
LIMITS = {torch.float64: 1e-10, torch.float32: 2e-6}


def distances(group, dtype, bucket_bytes):
    """Train each model on all ranks and alone; return their differences and the final state of this rank."""
    found = {}
    for name in MODELS:
        model = SyncBatchNorm.convert(make(name, dtype), group)
        wrapped = DataParallel(model, group, bucket_bytes=bucket_bytes)
        losses = train(wrapped, name, STEPS, group.rank, group.size)
        alone = make(name, dtype)
        losses_alone = train(alone, name, STEPS)
        found[name] = (
            furthest(wrapped.state_dict(), alone.state_dict()), losses, losses_alone,
            [parameter.detach() for parameter in wrapped.parameters()],
        )  # fmt: skip
    return found


def check_distances(ranks, limit):
    for name in MODELS:
        for rank in ranks:
            assert rank[name][0] < limit
            assert all(torch.equal(a, b) for a, b in zip(rank[name][3], ranks[0][name][3], strict=True))
        for losses, alone in zip(
            zip(*(rank[name][1] for rank in ranks), strict=True), ranks[0][name][2], strict=True
        ):
            assert fmean(losses) == pytest.approx(alone, abs=limit)


@pytest.mark.parametrize(
    ("size", "kind", "dtype"),
    [
        (1, "comm", torch.float64), (2, "comm", torch.float64), (2, "comm", torch.float32),
        pytest.param(3, "comm", torch.float64, marks=pytest.mark.slow),
        pytest.param(4, "comm", torch.float64, marks=pytest.mark.long),
        pytest.param(4, "comm", torch.float32, marks=pytest.mark.long),
        pytest.param(2, "gloo", torch.float64, marks=pytest.mark.slow),
        pytest.param(3, "gloo", torch.float64, marks=pytest.mark.long),
        pytest.param(3, "unisono", torch.float64, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_training_on_several_ranks_matches_one_process_with_the_whole_batch(size, kind, dtype):
    check_distances(run_groups(distances, size, dtype, 600, kind=kind), LIMITS[dtype])


@pytest.mark.parametrize("bucket_bytes", [1, 1 << 20])
def test_the_bucket_size_does_not_change_the_result(bucket_bytes):
    check_distances(run_groups(distances, 2, torch.float64, bucket_bytes), LIMITS[torch.float64])


def step_by_step(group, name):
    """Train with DataParallel and with torch's DDP; return the largest difference after each step."""
    ours = DataParallel(make(name), group, bucket_bytes=600)
    theirs = DistributedDataParallel(make(name))
    optimizers = [sgd(ours), sgd(theirs)]
    apart = []
    for step in range(STEPS):
        inputs, targets = (share(part, group.rank, group.size) for part in batch(name, step))
        for model, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            loss_of(model, inputs, targets).backward()
            optimizer.step()
        apart.append(furthest(ours.state_dict(), theirs.module.state_dict()))
    return apart


@pytest.mark.parametrize(
    ("size", "kind"), [(2, "gloo"), pytest.param(3, "gloo", marks=pytest.mark.long), (2, "unisono")]
)
@pytest.mark.parametrize("name", MODELS)
def test_every_step_matches_torch_ddp(name, size, kind):
    """In the conv net each rank normalizes its own batch, as torch has no synchronized batch norm on the CPU."""
    for apart in run_groups(step_by_step, size, name, kind=kind):
        assert len(apart) == STEPS
        assert max(apart) < 1e-12
