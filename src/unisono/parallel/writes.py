"""Handles values that a program writes into parameters after wrapping: they are trained on or rejected, never lost.

::

    stages 1, 2   a parameter is a view of its flat's vector, so a written value is in the shard at once. With mixed
                  precision the optimiser has a copy of the shard: ``copy_writes_to_master`` updates the copy
    stage 3       a parameter shares a buffer with others: unit_buffers.py raises if a value was written

A parameter that is given other memory (``parameter.data = ...``, ``module.half()``) leaves its flat: an error.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from unisono.errors import UsageError
from unisono.parallel.sharding import Flat
from unisono.parallel.zero_messages import OTHER_MEMORY


class ParameterAddresses:
    """The memory addresses of the parameters of all flats that are kept whole."""

    def __init__(self, flats: Iterable[Flat]) -> None:
        members = [member for flat in flats if flat.whole is not None for member in flat.members]
        self.addresses = [(member.names[0], member.parameter, member.parameter.data_ptr()) for member in members]

    def check(self) -> None:
        """Raise if a parameter is no longer a view of the vector that is updated."""
        for name, parameter, address in self.addresses:
            if parameter.data_ptr() != address:
                raise UsageError(OTHER_MEMORY(name=name))


def copy_writes_to_master(flat: Flat) -> None:
    """Copy values written into parameters since the last update to the optimiser's copy of the shard.

    Only elements that differ are copied: the others keep the precision that the compute dtype lacks.
    """
    if flat.whole is None or not flat.is_mixed:
        return
    known = flat.master.data.to(flat.compute_dtype)
    if not torch.equal(known, flat.shard):
        written = known != flat.shard
        flat.master.data[written] = flat.shard[written].to(flat.dtype)
