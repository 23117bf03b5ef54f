"""torch's reductions in ours. Three of them need something before or after."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.distributed import ReduceOp

from unisono.errors import UsageError
from unisono.reductions import REDUCTIONS

KINDS = ReduceOp.RedOpType
NAMES = {getattr(KINDS, each.torch): each.name for each in REDUCTIONS.values()}  # ours, by torch's
SCALED_SUM = "PREMUL_SUM"  # torch's sum of inputs that are multiplied by a factor first

WITHOUT_DIVISION = (torch.uint16, torch.uint32, torch.uint64)  # in torch


class Reduction(NamedTuple):
    """A reduction of a call."""

    op: str  # the engine's
    factor: Any = None  # by which everything is multiplied first
    divisor: int = 1  # by which the result is divided, towards zero: an average of integers

    def before(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return what goes into the reduction, of the same type as what the user gave."""
        return tensor if self.factor is None else (tensor.detach() * self.factor).to(tensor.dtype)

    def after(self, tensor: torch.Tensor) -> None:
        """Finish the result, where it is."""
        if self.divisor == 1:
            return
        with torch.inference_mode():  # the tensor may have been made in it
            if tensor.dtype in WITHOUT_DIVISION:
                tensor.copy_(torch.from_numpy(tensor.clone().numpy() // self.divisor))
            else:
                tensor.div_(self.divisor, rounding_mode="trunc")


def reduction(op: Any, dtype: torch.dtype, size: int, who: str) -> Reduction:
    """Translate; raise UsageError for what there is not."""
    kind = getattr(op, "op", op)
    if kind == getattr(KINDS, SCALED_SUM):
        return Reduction("sum", factor=op.__getstate__()[1])
    name = NAMES.get(kind)
    if name is None:
        names = ", ".join([*(each.torch for each in REDUCTIONS.values()), SCALED_SUM])
        raise UsageError(f"{who}: op={op}; expected one of {names}")
    if name == "avg" and not (dtype.is_floating_point or dtype.is_complex):
        if dtype is torch.bool:
            raise UsageError(f"{who}: an average of booleans has no meaning; use MAX or MIN")
        return Reduction("sum", divisor=size)
    return Reduction(name)


def is_plain(op: Any) -> bool:
    """Whether it is the engine's as it is, by its name alone."""
    return (getattr(op, "op", op)) in NAMES
