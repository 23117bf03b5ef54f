"""Dropout on several ranks: who draws the same numbers, and who must not.

::

    what every rank computes alike (a whole)       all ranks draw the same numbers, or the wholes become different
    what every rank has a part of (heads, shards)  every rank draws its own, or the parts repeat each other

Torch draws from one generator per device. All ranks seed it with the same number, and as long as all draw
equally much they stay in step: that is the first line. For the second, ``own_random_numbers`` draws one
number in step, makes of it and of the rank the seed for what is inside the block, and puts the generator back
afterwards: however much a rank draws inside, all are in step again. Activation checkpointing works with it,
for it puts the same generator back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from unisono.parallel.group import Group


@contextmanager
def own_random_numbers(group: Group, device: Any) -> Iterator[None]:
    """Let every rank draw numbers of its own on a device; afterwards all draw the same again."""
    seed = int(torch.randint(2**40, ())) * group.size + group.rank  # below 2**63 up to millions of ranks
    on_gpu = torch.device(device).type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


class SplitDropout(nn.Dropout):
    """Dropout of something of which every rank has a part."""

    def __init__(self, p: float, group: Group) -> None:
        super().__init__(p)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        """Zero some elements, on every rank others."""
        if not self.training or self.p == 0:
            return x
        with own_random_numbers(self.group, x.device):
            return super().forward(x)
