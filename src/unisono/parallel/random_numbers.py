"""Random numbers for dropout on several ranks.

::

    computations that are the same on every rank (a whole)   all ranks draw the same numbers, or the wholes differ
    computations on a part (heads, shards)                   each rank draws different numbers, or the parts repeat

Torch draws from one generator per device. All ranks seed it with the same number, and as long as all draw the same
amount, their generators stay equal; that serves the first line. For the second, ``own_random_numbers`` draws one
number on all ranks, derives the seed for its block from it and from the rank, and restores the generator afterwards:
however much a rank draws inside the block, all generators are equal again. Activation checkpointing works with it,
because it restores the same generator.
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
    """Let every rank draw different random numbers within the block; afterwards all draw the same again.

    ``group``: the ranks, all of which enter the block.
    ``device``: the device whose generator is used.
    """
    seed = int(torch.randint(2**40, ())) * group.size + group.rank  # below 2**63 up to millions of ranks
    on_gpu = torch.device(device).type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


class SplitDropout(nn.Dropout):
    """Dropout of a tensor of which every rank holds a part.

    ``p``: the probability of dropping an element. ``group``: the ranks that share the tensor.
    """

    def __init__(self, p: float, group: Group) -> None:
        super().__init__(p)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        """Set random elements of ``x`` to zero, different ones on every rank."""
        if not self.training or self.p == 0:
            return x
        with own_random_numbers(self.group, x.device):
            return super().forward(x)
