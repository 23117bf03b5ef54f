"""Steps for docs/parallel/sync_batchnorm.md."""

from __future__ import annotations

import torch
from torch import nn

from unisono.parallel import Group, Log, SyncBatchNorm, record

RANKS = 4


def step(group: Group) -> Log:
    """Return the collectives of the batch norms of a small net, in training and in evaluation."""
    net = nn.Sequential(
        nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3), nn.BatchNorm2d(128)
    )
    net = SyncBatchNorm.convert(net, group)
    images = torch.randn(2, 3, 8, 8)
    with record() as log:
        net(images).sum().backward()
        net.eval()(images)
    return log
