r"""Splits a tensor over the ranks of a tensor-parallel group, along one dimension.

::

    10 rows on 3 ranks           2 blocks of 3 units, each of 2 rows, on 2 ranks
    (shares 4, 3, 3)             (a block: all queries, or all keys; a unit: one head)

    0 1 2 3 | 4 5 6 | 7 8 9      q0 q0 q1 q1 q2 q2   k0 k0 k1 k1 k2 k2
    rank 0    rank 1  rank 2     \___0_____/ \_1_/   \___0_____/ \_1_/

The *share* of a rank is its piece of one block. Shares differ by at most one unit. The *part* of a rank is its share
of every block. Groups move parts of equal size only: where shares differ, the shorter ones are padded with zeros for
the call, and the padding is removed afterwards.
"""

from __future__ import annotations

from copy import copy

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.group import Group
from unisono.parallel.layer_messages import TOO_FEW_UNITS
from unisono.schedule.partition import partition


class Split:
    """A dimension of ``blocks`` * ``units`` * ``unit`` rows, split over the ranks of a group.

    ``group``: the ranks.
    ``dim``: the dimension of the tensor.
    ``units``: the number of units in a block, which are shared out over the ranks.
    ``unit``: the rows that stay together on a rank (one head).
    ``blocks``: the number of blocks, each of which is split (queries, keys and values).
    """

    def __init__(self, group: Group, dim: int, units: int, *, unit: int = 1, blocks: int = 1) -> None:
        self.group, self.dim, self.blocks = group, dim, blocks
        self.ranges = [range(piece.start * unit, piece.stop * unit) for piece in partition(units, group.size)]
        self.block = units * unit  # rows of a block
        self.whole = blocks * self.block  # rows of all
        self.lengths = [blocks * len(each) for each in self.ranges]  # rows of every rank's part
        self.mine = self.ranges[group.rank]  # this rank's share of the first block
        self.length = self.lengths[group.rank]
        self._plain = blocks == 1 and len(set(self.lengths)) == 1  # parts of one size, one after the other

    def along(self, dim: int) -> Split:
        """Return the same split of another dimension, ``dim``."""
        other = copy(self)
        other.dim = dim
        return other

    def cut(self, whole: Tensor) -> Tensor:
        """Return a copy of this rank's part of ``whole``."""
        rows = self._rows_of(self.group.rank, whole.movedim(self.dim, 0))
        return rows.movedim(0, self.dim).clone(memory_format=torch.contiguous_format)

    def gather(self, part: Tensor, *, name: str, phase: str) -> Tensor:
        """Return the whole from the ``part`` of every rank, by one all-gather.

        ``name``, ``phase``: as in ``Group``.
        """
        longest = max(self.lengths)
        rows = part.detach().movedim(self.dim, 0)
        out = rows.new_empty((self.group.size * longest, *rows.shape[1:]))
        self.group.all_gather(out, _padded(rows, longest), name=name, phase=phase)
        if not self._plain:
            pieces = [
                out.narrow(0, rank * longest, length).unflatten(0, (self.blocks, length // self.blocks))
                for rank, length in enumerate(self.lengths)
            ]
            out = torch.cat(pieces, dim=1).flatten(0, 1)
        return out.movedim(0, self.dim).contiguous()

    def sum_and_scatter(self, whole: Tensor, *, name: str, phase: str) -> Tensor:
        """Return this rank's part of the sum of the ``whole`` of every rank, by one reduce-scatter.

        ``name``, ``phase``: as in ``Group``.
        """
        longest = max(self.lengths)
        rows = whole.detach().movedim(self.dim, 0)
        if not self._plain:
            rows = torch.cat([_padded(self._rows_of(rank, rows), longest) for rank in range(self.group.size)])
        out = rows.new_empty((longest, *rows.shape[1:]))
        self.group.reduce_scatter(out, rows.contiguous(), name=name, phase=phase)
        return out[: self.length].movedim(0, self.dim).contiguous()

    def _rows_of(self, rank: int, rows: Tensor) -> Tensor:
        share = self.ranges[rank]
        blocks = rows.unflatten(0, (self.blocks, self.block))
        return blocks[:, share.start : share.stop].flatten(0, 1)


def _padded(rows: Tensor, longest: int) -> Tensor:
    """Return the rows, padded with zeros to this length."""
    if len(rows) == longest:
        return rows.contiguous()
    padded = rows.new_zeros((longest, *rows.shape[1:]))
    padded[: len(rows)] = rows
    return padded


def split_features(
    location: str, what: str, group: Group, dim: int, units: int, *, unit: int = 1, blocks: int = 1
) -> Split:
    """Return a split that gives every rank at least one unit; raise if there are too few."""
    if units < group.size:
        raise UsageError(TOO_FEW_UNITS(location=location, count=units, what=what, size=group.size))
    return Split(group, dim, units, unit=unit, blocks=blocks)
