"""Features that torch does not support on the CPU, with any backend, raise errors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402


def use_synchronized_statistics():
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)))
    assert isinstance(model[1], nn.SyncBatchNorm)
    with pytest.raises(ValueError, match="SyncBatchNorm layers only work with GPU modules") as caught:
        DistributedDataParallel(model)(torch.randn(6, 8))
    return str(caught.value)


def test_synchronized_batch_norm_is_not_supported_on_the_cpu():
    [gloo, _] = run_ranks(use_synchronized_statistics, 2, backend="gloo")
    assert run_ranks(use_synchronized_statistics, 2) == [gloo] * 2
