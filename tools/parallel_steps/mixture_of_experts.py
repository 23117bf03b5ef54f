"""A step of a mixture of experts: 8 experts, 6 rows on each rank, 16 features, float32."""

from __future__ import annotations

import torch
from torch import nn

from unisono.parallel import Group, MixtureOfExperts, record

RANKS = 4
FEATURES, EXPERTS, ROWS = 16, 8, 6


def step(group: Group) -> str:
    """Return the collectives of rank 0; other ranks receive different numbers of rows."""
    layer = MixtureOfExperts.of(FEATURES, EXPERTS, lambda: nn.Linear(FEATURES, FEATURES), group, top_k=2)
    torch.manual_seed(group.rank)
    x = torch.randn(ROWS, FEATURES, requires_grad=True)
    with record() as log:
        layer(x).output.sum().backward()
    return str(group.all_gather_object(log.table())[0])
