"""Values that a program writes into parameters after the module was wrapped: taken over or refused, never lost.

::

    stages 1, 2   a parameter is a view of its flat's vector, so a written value is in the shard at once. With mixed
                  precision the optimiser has a copy of the shard: ``copy_writes_to_master`` updates the copy
    stage 3       a parameter has no memory of its own: gathering.py refuses what was written

A parameter that is given other memory (``parameter.data = ...``, ``module.half()``) leaves its flat: refused.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from unisono.errors import UsageError
from unisono.parallel.sharding import Flat


class ParameterAddresses:
    """Where the parameters of flats lie that are kept whole."""

    def __init__(self, flats: Iterable[Flat], who: str) -> None:
        members = [member for flat in flats if flat.whole is not None for member in flat.members]
        self.addresses = [(member.names[0], member.parameter, member.parameter.data_ptr()) for member in members]
        self.who = who

    def check(self) -> None:
        """Raise if a parameter is no longer a part of the vector that is updated."""
        for name, parameter, address in self.addresses:
            if parameter.data_ptr() != address:
                raise UsageError(
                    f"{self.who}: parameter {name!r} was given other memory after the module was wrapped "
                    "(parameter.data = ..., or a cast of the module), and would not be updated; write the values "
                    "into it (parameter.copy_() under torch.no_grad()), or change the module before it is wrapped"
                )


def copy_writes_to_master(flat: Flat) -> None:
    """Let the optimiser's copy of the shard have what was written into the parameters since the last update.

    Only elements that differ are copied: the others keep the digits that the dtype of computing does not have.
    """
    if flat.whole is None or not flat.is_mixed:
        return
    known = flat.master.data.to(flat.compute_dtype)
    if not torch.equal(known, flat.shard):
        written = known != flat.shard
        flat.master.data[written] = flat.shard[written].to(flat.dtype)
