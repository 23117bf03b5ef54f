"""Our layers match those of torch.distributed.tensor in every step, on the same process group."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.distributed.tensor.parallel import (  # noqa: E402
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from whole_models import WholeMLP, train  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.parallel import ParallelMLP, full_state_dict  # noqa: E402


def both():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    theirs = WholeMLP(6, 8)
    mesh = DeviceMesh("cpu", list(range(dist.get_world_size())))
    parallelize_module(theirs, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    torch.manual_seed(0)
    ours = ParallelMLP(6, 8, None)
    x = [torch.randn(8, 6) for _ in range(20)]

    def loss_of(model, step):
        return (model(x[step]) - x[step].flip(-1)).square().mean()

    losses = [train(model, loss_of) for model in (ours, theirs)]
    found = full_state_dict(ours)
    expected = {name: value.full_tensor() for name, value in theirs.state_dict().items()}
    return losses, max(float((found[name] - expected[name]).abs().max()) for name in expected)


@pytest.mark.parametrize(
    ("size", "backend"), [(2, "gloo"), pytest.param(4, "gloo", marks=pytest.mark.long), (2, "unisono")]
)
def test_an_mlp_trains_like_the_tensor_parallel_mlp_of_torch(size, backend):
    for (ours, theirs), difference in run_ranks(both, size, backend=backend):
        assert ours == pytest.approx(theirs, rel=1e-12)
        assert ours[-1] < ours[0]
        assert difference < 1e-12
